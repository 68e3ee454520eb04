"""Several at once: writers, readers during a commit, collection beside a reader, and a file system that knows no locks."""
import errno
import fcntl
import json
import os
import shutil

from cuts import COMPILED_ASSETS, SOURCE_ASSETS
from rig import BUNDLE, Lost, files_of, must, siblings, unlocked


class Paused:
    """A command that stands at its n-th system call until `go_on`. `reached`: it got there, rather than to its end."""

    def __init__(self, rig, where, n, command):
        tell_read, tell_write = os.pipe()
        wait_read, self.wait_write = os.pipe()
        at = f"{n}:{tell_write}:{wait_read}"
        self.process = rig.start([rig.kill_at, "pause", at, *command], where, pass_fds=(tell_write, wait_read))
        os.close(tell_write)
        os.close(wait_read)
        self.reached = os.read(tell_read, 1) == b"."
        os.close(tell_read)

    def go_on(self):
        """Returns (exit code, standard error)."""
        if self.reached:
            os.write(self.wait_write, b".")
        os.close(self.wait_write)
        _, errors = self.process.communicate(timeout=300)
        return self.process.returncode, errors.strip()[-300:]

    def ends_well(self, who):
        code, errors = self.go_on()
        must(code == 0, f"{who} ended with {code}: {errors}")


def first(names, word, count=1):
    """The number of the count-th call of that name."""
    return [n for n, name in enumerate(names, 1) if name == word][count - 1]


def is_collecting(where):
    """Whether a writer keeps new readers out of the bundle."""
    fd = os.open(os.path.join(where, BUNDLE), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def changing(names):
    return [n for n, name in enumerate(names, 1) if name != "-"]


def over(pool, points, at_point, sentence):
    """at_point(n) for all points; it raises, or returns whether the point was reached."""
    wrong = []

    def one(n):
        try:
            return at_point(n)
        except Lost as lost:
            wrong.append(f"at call {n}: {lost}")
            return False

    reached = sum(pool.map(one, points))
    if wrong:
        raise Lost(f"{len(wrong)} of {len(points)} points\n        " + "\n        ".join(wrong[:5]))
    return reached, f"{reached} {sentence}"


def cases(rig, pool, every):
    made = rig.folder()
    rig.run(rig.encrypt(), made, 0)
    writer = rig.calls(rig.compile(), rig.folder(made))
    reader = rig.calls(rig.decrypt(), rig.folder(made))
    plain = sorted(rig.plain_bytes())
    encrypt = rig.calls(rig.encrypt(), rig.folder())

    def readers_during():
        """The commit stands still at each call that changes something; a reader opens every byte of the one or the other."""
        def at(n):
            where = rig.folder(made)
            commit = Paused(rig, where, n, rig.compile())
            if is_collecting(where):  # a reader waits until old files are deleted
                waiting = rig.start(rig.reader(), where)
                commit.ends_well("the writer")
                out, errors = waiting.communicate(timeout=300)
                must(waiting.returncode == 0, f"the reader ended with {waiting.returncode}: {errors}")
                count = json.loads(out)["checked"]["assets"]
            else:
                count = rig.verify(where)["checked"]["assets"]
                commit.ends_well("the writer")
            must(count in (SOURCE_ASSETS, COMPILED_ASSETS), f"a reader saw {count} assets")
            must(rig.verify(where)["checked"]["assets"] == COMPILED_ASSETS, "the commit is not there")
            shutil.rmtree(where)
            return commit.reached
        return over(pool, changing(writer)[::every], at, "moments of a commit with a reader")

    def reader_over_commit():
        """The reader stands still at each of its calls, a whole commit passes, the reader goes on: it gives the same files."""
        def at(n):
            where = rig.folder(made)
            reading = Paused(rig, where, n, rig.decrypt())
            rig.run(rig.compile(), where, 0)
            reading.ends_well("the reader")
            given = files_of(os.path.join(where, "plain"))
            must(sorted(given.values()) == plain, f"the reader gave other files: {sorted(given)}")
            shutil.rmtree(os.path.join(where, "plain"))
            rig.run(rig.compile("--variant", "again"), where, 0)
            rig.clean(where, BUNDLE)
            shutil.rmtree(where)
            return reading.reached
        return over(pool, range(every, len(reader) + 1, every), at, "moments of a reader with a commit")

    def one_name():
        """Two encrypts of one name: whoever comes first has it, the other one is refused; neither takes the other's work away."""
        def at(n):
            where = rig.folder()
            slow = Paused(rig, where, n, rig.encrypt())
            code = rig.run(rig.encrypt(), where).returncode
            slow_code, errors = slow.go_on()
            must(sorted((code, slow_code)) == [0, 6], f"the two ended with {code} and {slow_code}: {errors}")
            rig.clean(where, BUNDLE)
            shutil.rmtree(where)
            return slow.reached
        return over(pool, changing(encrypt)[::every], at, "moments of an encrypt with a second one of the same name")

    return [("readers during a commit", readers_during), ("a commit during a reader", reader_over_commit),
            ("two encrypts, one name", one_name), ("two writers", lambda: two_writers(rig, made, writer, max(2, 10 // every))),
            ("collection", lambda: collection(rig, made, writer, reader)), ("no flock", lambda: no_flock(rig, made))]


def two_writers(rig, made, writer, rounds):
    where = rig.folder(made)
    holder = Paused(rig, where, first(writer, "fsync"), rig.compile())
    must(holder.reached, "the writer was not stopped at its first fsync")
    done = rig.run(rig.compile("--variant", "b"), where)
    must(done.returncode == 1 and "another process" in done.stderr, f"the second writer ended with {done.returncode}: {done.stderr}")
    waiting = rig.start(rig.compile("--variant", "c"), where)
    holder.ends_well("the first writer")
    errors = waiting.communicate(timeout=300)[1]
    must(waiting.returncode == 0, f"the writer that waited ended with {waiting.returncode}: {errors}")
    must(rig.verify(where)["checked"]["assets"] == COMPILED_ASSETS + 2, "one of the two commits is missing")
    rig.clean(where, BUNDLE)
    for _ in range(rounds):
        where = rig.folder(made)
        both = [rig.start(rig.compile("--variant", name), where) for name in "de"]
        for process in both:
            errors = process.communicate(timeout=300)[1]
            must(process.returncode == 0, f"one of two writers ended with {process.returncode}: {errors}")
        must(rig.verify(where)["checked"]["assets"] == COMPILED_ASSETS + 2, "one of the two commits is missing")
        rig.clean(where, BUNDLE)
    return 2 + rounds, f"one is told that it is BUSY, one waits, {rounds} times at once: every commit is there"


def collection(rig, made, writer, reader):
    """Objects that no manifest names, made by a kill just before a commit: they stay as long as an older reader is there."""
    # the calls of several threads are counted together, so that one run's number may fall a little beside the rename in another
    before_commit = first(writer, "renameat", writer.count("renameat"))
    for back in range(0, 40, 2):
        where = rig.folder(made)
        rig.run([rig.kill_at, "kill", str(before_commit - back), *rig.compile()], where)
        left = rig.verify(where)["unreferenced"]
        if left:
            break
        shutil.rmtree(where)
    must(left, "a writer killed before its commit left no objects to collect")
    old_key = os.listdir(os.path.join(where, BUNDLE, "keys"))
    reading = Paused(rig, where, reader.index("flock") + 2, rig.decrypt())
    must(reading.reached, "the reader was not stopped behind its lock")
    rig.run(rig.compile(), where, 0)
    must(rig.verify(where)["unreferenced"] == left, "objects were deleted while an older reader was there")
    must(set(old_key) < set(os.listdir(os.path.join(where, BUNDLE, "keys"))), "a key file was deleted while an older reader was there")
    reading.ends_well("the reader")
    shutil.rmtree(os.path.join(where, "plain"))
    rig.run(rig.compile("--variant", "again"), where, 0)
    rig.clean(where, BUNDLE)
    return 1, f"{len(left)} old objects and {len(old_key)} old key files stayed with a reader there, and went after it"


def no_flock(rig, made):
    for cause in (errno.EOPNOTSUPP, errno.ENOLCK):
        env = {"LD_PRELOAD": rig.no_flock, "NO_FLOCK": str(cause)}
        for command, template in ((rig.encrypt(), None), (rig.compile(), made), (rig.compile("-o", "second.ortc"), made)):
            where = rig.folder(template)
            before = files_of(where)
            done = rig.run(command, where, **env)
            must(done.returncode == 5 and "without locks (flock)" in done.stderr,
                 f"{command[1]} ended with {done.returncode}: {done.stderr}")
            must(files_of(where) == before and not siblings(where), f"{command[1]} left something behind")
        where = rig.folder(made)
        rig.run(rig.reader(), where, 0, **env)
        unlocked(where)
    return 8, "writing is refused with exit code 5 and leaves nothing, reading works"
