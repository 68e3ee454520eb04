"""A command that is killed, stopped by Ctrl-C, or loses its power: what is there afterwards, and what a second run makes of it."""
import glob
import json
import os

from replay import Disk, trees, write_tree
from rig import BUNDLE, ENDED_BY_CUT, SECOND, Lost, files_of, must, siblings, unlocked

SOURCE_ASSETS, COMPILED_ASSETS = 3, 5


class Command:
    """One command under test. `before`: the folder it starts in; `makes`: the bundle that is old or new afterwards."""

    durable = True  # what it said to have done survives a power cut

    def __init__(self, rig, name, argv, before, makes, assets):
        self.rig, self.name, self.argv, self.before, self.makes, self.assets = rig, name, argv, before, makes, assets
        fresh = makes != BUNDLE or before is None
        self.old_id = None if fresh else rig.verify(before)["manifest_id"]

    def state(self, where):
        """"old" or "new": which of the two the bundle is, every byte opened. Anything else raises."""
        if self.old_id is None and not os.path.lexists(os.path.join(where, self.makes)):
            return "old"
        seen = self.rig.verify(where, self.makes)
        if seen["manifest_id"] == self.old_id:
            must(seen["checked"]["assets"] == SOURCE_ASSETS, "the old bundle lost an asset")
            return "old"
        must(seen["checked"]["assets"] == self.assets, f"a new bundle with {seen['checked']['assets']} assets")
        return "new"

    def others_whole(self, where):
        if self.makes == SECOND:
            must(self.rig.verify(where)["checked"]["assets"] == SOURCE_ASSETS, "the bundle that is read was changed")

    def bundles(self):
        return [BUNDLE, SECOND] if self.makes == SECOND else [self.makes]

    def second_run(self, where, state):
        """The same again: ends at once and leaves only the bundle; a new bundle that is there already is refused."""
        unlocked(where)
        want = 6 if state == "new" and self.old_id is None else 0
        done = self.rig.run(self.argv, where)
        must(done.returncode == want, f"the second run ended with {done.returncode}, not {want}: {done.stderr.strip()[-300:]}")
        self.rig.clean(where, *self.bundles())

    def after_interrupt(self, where, before, ended):
        state = self.state(where)
        self.rig.no_plaintext(where)
        unlocked(where)
        must(not siblings(where), "a half-made bundle was left")
        must(not ended or state == "new", "the command ended well and the bundle is the old one")
        if state == "old":
            must(files_of(where) == before, f"left behind: {sorted(set(files_of(where)) ^ set(before))}")
        else:
            self.rig.clean(where, *self.bundles())
        return state

    def after_cut(self, where):
        state = self.state(where)
        self.others_whole(where)
        self.rig.no_plaintext(where)
        if state == "new" and self.old_id is None:
            must(not siblings(where), "a half-made bundle lies beside the complete one")
        self.second_run(where, state)
        return state


class Cached(Command):
    """`run` that compiles just in time. The bundle is only read; "new": the entry in the cache is whole and serves the next run."""

    durable = False  # a cache may be lost: it is made again

    def __init__(self, rig, name, argv, before):
        super().__init__(rig, name, argv, before, BUNDLE, SOURCE_ASSETS)
        self.bundle = files_of(os.path.join(before, BUNDLE))

    def entries(self, where):
        return {path: open(path, "rb").read() for path in glob.glob(os.path.join(where, "cache", "*", "*", "manifest"))}

    def load(self, where):
        """The command again, to its end. Returns what it says on standard error."""
        done = self.rig.run(self.argv, where)
        must(done.returncode == 0, f"the next run ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        plan = json.loads(done.stdout)["plan"]
        must((plan["from"], plan["kind"]) == ("cache", "compiled"), f"the next run loaded {plan['kind']} from {plan['from']}")
        return done.stderr

    def after_cut(self, where):
        must(files_of(os.path.join(where, BUNDLE)) == self.bundle, "the bundle was changed")
        self.rig.no_plaintext(where)
        unlocked(where)
        for path in glob.glob(os.path.join(where, "cache", "*", "*")):
            unlocked(os.path.dirname(path))
        before = self.entries(where)
        self.load(where)
        after = self.entries(where)
        must(len(after) == 1, f"{len(after)} entries in the cache")
        said = self.load(where)
        must(said == "" and self.entries(where) == after, f"an entry that was just made did not serve: {said}")
        must(os.listdir(os.path.join(where, "home")) == [], "something was written to the home folder")
        left = glob.glob(os.path.join(where, "cache", "*", "*", "tmp", "*")) + glob.glob(os.path.join(where, "cache", "*", "*.tmp-*"))
        must(not left, f"left in the cache: {left}")
        return "new" if before == after else "old"

    def after_interrupt(self, where, before, ended):
        state = self.after_cut(where)
        must(not ended or state == "new", "the command ended well and made no entry")
        return state


def commands(rig):
    made = rig.folder()
    rig.run(rig.encrypt(), made, 0)
    return [Command(rig, "encrypt", rig.encrypt(), None, BUNDLE, SOURCE_ASSETS),
            Command(rig, "compile", rig.compile(), made, BUNDLE, COMPILED_ASSETS),
            Command(rig, "compile -o", rig.compile("-o", SECOND), made, SECOND, COMPILED_ASSETS),
            Cached(rig, "run with a cache", rig.run_cached(), made)]


def kill_points(command, every):
    """Every `every`-th call, and of those that change files or locks as many more. Beyond the end: the count varies by a few."""
    names = command.rig.calls(command.argv, command.rig.folder(command.before))
    changing = [n for n, name in enumerate(names, 1) if name != "-"]
    step = max(1, every // 2)
    return sorted({*range(every, len(names) + 1, every), *changing[step - 1::step], *range(len(names) + 1, len(names) + 9, every)})


def killed(command, n):
    """SIGKILL at the n-th call. Returns "old" or "new", None when the command had ended before."""
    rig = command.rig
    where = rig.folder(command.before)
    done = rig.run([rig.kill_at, "kill", str(n), *command.argv], where)
    must(done.returncode in (0, ENDED_BY_CUT), f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    state = command.after_cut(where)
    must(done.returncode != 0 or state == "new", "the command ended well and the bundle is the old one")
    return (state if done.returncode == ENDED_BY_CUT else None), where


def interrupted(command, n):
    """SIGINT at the n-th call: either everything was done, or nothing is left."""
    rig = command.rig
    where = rig.folder(command.before)
    before = files_of(where)
    done = rig.run([rig.kill_at, "int", str(n), *command.argv], where)
    must(done.returncode in (0, 1, 130), f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return command.after_interrupt(where, before, done.returncode == 0), where


def power_cuts(command, pool, every):
    """Every prefix of the command's log under every model. Yields (cut points so far, "old"/"new" of a tree that was opened)."""
    rig = command.rig
    where = rig.folder(command.before)
    os.makedirs(os.path.join(where, "home"), exist_ok=True)
    log = os.path.join(rig.folder(), "log")
    disk = Disk(where)
    rig.run([rig.record, log, *command.argv], where, 0)

    def check(item):
        cuts, event, model, reported, tree = item
        at = f"after \"{event}\", model \"{model}\""
        if tree is None:
            must(reported, "the command did not say that it is done")
            return cuts, None, None
        there = rig.folder()
        write_tree(tree, there)
        try:
            state = command.after_cut(there)
            must(not reported or state == "new" or not command.durable, "the command had said that it is done, and the bundle is the old one")
        except Lost as lost:
            raise Lost(f"{at}: {lost} (tree in {there})") from None
        return cuts, state, there

    step = max(1, every // 12)
    chosen = [item for i, item in enumerate(trees(disk, log)) if i % step == 0 or item[3]]  # all of those after the report
    yield from pool.map(check, chosen)
