"""What the crash tests share: a model, a key, the commands, and what must hold for a bundle and the folder around it."""
import fcntl
import glob
import json
import os
import shutil
import subprocess
import tempfile

ENDED_BY_CUT = 200  # exit code of kill_at when the n-th call was reached
BUNDLE = "m.ortc"
SECOND = "second.ortc"
EXTRA_LEN = 2_500_000  # three pieces: written by several threads


class Lost(AssertionError):
    """A bundle that does not open, or something left behind."""


def must(condition, sentence):
    if not condition:
        raise Lost(sentence)


class Rig:
    def __init__(self, build, deps, source):
        tmpfs = "/dev/shm"
        roomy = os.access(tmpfs, os.W_OK) and shutil.disk_usage(tmpfs).free > 512 << 20
        self.work = tempfile.mkdtemp(prefix="ortcrypt-crash-", dir=tmpfs if roomy else None)
        self.ortcrypt = os.path.join(build, "ortcrypt")
        self.kill_at = os.path.join(build, "tests", "faults", "kill_at")
        self.record = os.path.join(build, "tests", "faults", "record")
        self.no_flock = os.path.join(build, "tests", "faults", "libno_flock.so")
        self.find_plaintext = os.path.join(build, "find_plaintext")
        self.runtime = glob.glob(os.path.join(deps, "ort", "1.32.0", "libonnxruntime.so.*"))[0]
        models = os.path.join(self.work, "models")
        subprocess.run([os.path.join(deps, "venv", "bin", "python"), os.path.join(source, "tests", "cli", "make_models.py"), models],
                       check=True)
        self.model = os.path.join(models, "ext", "good.onnx")
        self.extra = os.path.join(models, "extra.bin")
        with open(self.extra, "wb") as file:
            file.write(os.urandom(EXTRA_LEN))
        self.plain = [self.model, os.path.join(models, "ext", "weights.bin"), self.extra]
        self.key = os.path.join(self.work, "key.txt")
        self.run([self.ortcrypt, "keygen", "-o", self.key], self.work, 0)
        with open(self.key, encoding="ascii") as file:
            self.recipient = next(line.split(": ")[1].strip() for line in file if line.startswith("# public key"))

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def plain_bytes(self):
        for path in self.plain:
            with open(path, "rb") as file:
                yield file.read()

    def environment(self, where, **more):
        home = os.path.join(where, "home")
        os.makedirs(home, exist_ok=True)
        return {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "ORTCRYPT_ORT": self.runtime, "ORT_DISABLE_TELEMETRY": "1",
                "LC_ALL": "C.UTF-8", **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}, **more}

    def run(self, command, where, want=None, **env):
        done = subprocess.run(command, cwd=where, env=self.environment(where, **env), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300, check=False)
        if want is not None:
            must(done.returncode == want, f"exit code {done.returncode}, not {want}: {done.stderr.strip()[-300:]}")
        return done

    def start(self, command, where, **kwargs):
        return subprocess.Popen(command, cwd=where, env=self.environment(where), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **kwargs)

    def encrypt(self):
        return [self.ortcrypt, "encrypt", self.model, "-o", BUNDLE, "-r", self.recipient, "--extra", self.extra]

    def compile(self, *more):
        return [self.ortcrypt, "compile", BUNDLE, "-i", self.key, "--ep", "OrtcryptReference", *more]

    def run_cached(self):
        return [self.ortcrypt, "run", BUNDLE, "-i", self.key, "--ep", "OrtcryptReference", "--cache", "cache", "--machine-key",
                "machine.key", "--random", "1", "--explain", "--json"]

    def reader(self, bundle=BUNDLE):
        return [self.ortcrypt, "verify", bundle, "-i", self.key, "--json"]

    def decrypt(self):
        return [self.ortcrypt, "decrypt", BUNDLE, "-i", self.key, "-o", "plain"]

    def folder(self, template=None):
        """A fresh folder, with a copy of what is in `template`."""
        where = tempfile.mkdtemp(dir=self.work)
        if template is not None:
            shutil.copytree(template, where, dirs_exist_ok=True)
        return where

    def calls(self, command, where):
        """The names of all system calls of a command that ends well; "-" for those that change nothing."""
        names = os.path.join(self.folder(), "calls")
        self.run([self.kill_at, "list", names, *command], where, 0)
        with open(names, encoding="ascii") as file:
            return file.read().split()

    def verify(self, where, bundle=BUNDLE):
        """Opens every byte with the key. Returns what `verify --json` says."""
        return json.loads(self.run(self.reader(bundle), where, 0).stdout)

    def no_plaintext(self, where):
        self.run([self.find_plaintext, *self.plain, "--", where], where, 0)

    def clean(self, where, *bundles):
        """Nothing but the bundles is there, and in them nothing that their manifest does not name."""
        names = sorted(set(os.listdir(where)) - {"home"})
        must(names == sorted(bundles), f"the folder holds {names}")
        must(not os.listdir(os.path.join(where, "home")), "something was written to the home folder")
        for bundle in bundles:
            left = os.listdir(os.path.join(where, bundle, "tmp"))
            must(not left, f"{bundle}/tmp holds {left}")
            must(len(os.listdir(os.path.join(where, bundle, "keys"))) == 1, f"{bundle}/keys holds more than one file")
            must(not self.verify(where, bundle)["unreferenced"], f"{bundle} holds objects that its manifest does not name")


def unlocked(where):
    """Nobody holds a lock: neither on the file of writers nor on the folder of readers."""
    for path in glob.glob(os.path.join(where, "*.ortc*")) + glob.glob(os.path.join(where, "*.ortc*", "lock")):
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Lost(f"{path} is still locked") from None
        finally:
            os.close(fd)


def siblings(where):
    return glob.glob(os.path.join(where, "*.tmp-*"))


def files_of(root):
    out = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                out[os.path.relpath(path, root)] = file.read()
    return out
