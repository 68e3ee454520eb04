"""What the benchmarks share: where things are, child processes, the page cache, models and bundles made once per size."""

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPS = os.path.join(ROOT, "build", "deps")
WORK = os.path.join(ROOT, "build", "bench")
RUNTIMES = ("1.24.4", "1.30.0", "1.32.0")
EP_RUNTIME = "1.30.0"  # compiles what "epcontext" loads
TIMEOUT = 600  # seconds for one process
STARTED = time.monotonic()

# workload: (kind of model, share of --mib, ways besides plain)
WORKLOADS = {
    "external": ("external", 1, ("seed", "ortcrypt", "lazy")),
    "embedded": ("embedded", 1, ("seed", "ortcrypt", "split", "split lazy")),
    "minilm": ("minilm", 0, ("seed", "ortcrypt", "split")),
    "epcontext": ("epcontext", 1, ("ortcrypt",)),
    "external wide": ("external", 1, ("seed", "ortcrypt")),
    "external x4": ("external", 4, ("seed", "ortcrypt", "lazy")),
}
NARROW, WIDE = 2048, 4096  # of a layer: 16 and 64 MiB of weights
MINILM_INPUTS = ["input_ids=1x64", "attention_mask=1x64", "token_type_ids=1x64"]


class Failed(Exception):
    """One measurement did not work; the others go on."""


def progress(text):
    """A line with the minutes so far; on a terminal it overwrites itself."""
    spent = time.monotonic() - STARTED
    line = f"[{int(spent // 60)}:{int(spent % 60):02d}] {text}"
    if sys.stderr.isatty():
        print("\r\033[K" + line, end="", file=sys.stderr, flush=True)
    else:
        print(line, file=sys.stderr, flush=True)


def run(command, **more):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])} {command[1]} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def environment(malloc):
    """Of every measured process, plaintext and encrypted alike."""
    made = dict(os.environ, ORT_DISABLE_TELEMETRY="1", HOME=WORK, TMPDIR=WORK)
    if malloc == "fixed":
        made["GLIBC_TUNABLES"] = "glibc.malloc.mmap_threshold=131072"
    return made


def files_below(path):
    found = [path, *glob.glob(path + ".data"), *glob.glob(os.path.join(path, "**", "*"), recursive=True)]
    return [each for each in found if os.path.isfile(each)]


def warm(path):
    """Reads everything once: the page cache is warm for all alike."""
    for each in files_below(path):
        with open(each, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def cool(path):
    """Takes the files out of the page cache. They were written long ago and synced."""
    for each in files_below(path):
        fd = os.open(each, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(re.search(r"MemTotal:\s*(\d+)", file.read())[1]) / 2**20
    return f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}"


class Rig:
    """Programs, models and bundles of one size."""

    def __init__(self, build, mib, malloc="fixed"):
        self.build = os.path.abspath(build)
        self.mib = mib
        self.folder = os.path.join(WORK, f"{mib}-mib")
        self.key = os.path.join(self.folder, "key.txt")
        self.environment = environment(malloc)
        os.makedirs(self.folder, exist_ok=True)
        if not os.path.exists(self.key):
            run([self.program("ortcrypt"), "keygen", "-o", self.key])
        with open(self.key, encoding="utf-8") as file:
            self.recipient = re.search(r"age1\w+", file.read())[0]

    def program(self, name):
        return os.path.join(self.build, name)

    def runtime(self, version):
        return os.path.join(DEPS, "ort", version, "libonnxruntime.so." + version)

    def reference_ep(self):
        return self.program("libortcrypt_reference_ep.so")

    def make(self, name, command):
        """`command(path)` fills a new path; what was made before is kept. Interrupted ones are made again."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            progress("making " + os.path.relpath(path, ROOT))
            new = path + ".new"
            shutil.rmtree(new, ignore_errors=True)
            command(new)
            os.rename(new, path)
            os.sync()  # only clean pages leave the page cache
        return path

    def model(self, workload):
        """Path of the plaintext model."""
        kind, share, _ = WORKLOADS[workload]
        if kind == "minilm":
            return os.path.join(DEPS, "models", "minilm_int8.onnx")
        if kind == "epcontext":
            return os.path.join(self.make("epcontext", self.compile_plain), "model.onnx")

        width = WIDE if workload == "external wide" else NARROW

        def build(folder):
            os.makedirs(folder)
            run([sys.executable, os.path.join(ROOT, "tests", "models", "make_models.py"), "--big", str(self.mib * share), "--kind", kind,
                 "--width", str(width), os.path.join(folder, "model.onnx")])
        return os.path.join(self.make(f"{kind}-{share}" + ("-wide" if width == WIDE else ""), build), "model.onnx")

    def compile_plain(self, folder):
        os.makedirs(folder)
        run([self.program("bench_compile"), "plain", self.model("external"), os.path.join(folder, "model.onnx"), self.runtime(EP_RUNTIME),
             self.reference_ep(), "-"], env=self.environment)

    def bundle(self, workload, split=False):
        """Path of the encrypted model; embedded weights stay in it unless `split`."""
        if WORKLOADS[workload][0] == "epcontext":
            return self.make("epcontext.ortc", lambda path: run(
                [self.program("bench_compile"), "ortcrypt", self.bundle("external"), path, self.runtime(EP_RUNTIME), self.reference_ep(), self.key],
                env=self.environment))
        name = workload.replace(" ", "-") + ("-split" if split else "") + ".ortc"
        return self.make(name, lambda path: run([self.program("ortcrypt"), "encrypt", self.model(workload), "-o", path, "-r", self.recipient,
                                                 "--split" if split else "--no-split"]))

    def back_memory(self, mib):
        """Touches and gives back as much memory as the next process needs. A virtual machine hands free memory back to its host, and the
        first touch of such a page costs ten times as much, for whoever comes first: that is not what is compared."""
        run([self.program("bench_read"), "touch", str(mib * 2**20), "-", "-"])

    def load_command(self, workload, runtime, prepack, way):
        """(bench_load's command, what it reads)."""
        subject = self.model(workload) if way == "plain" else self.bundle(workload, way.startswith("split"))
        mode = {"split": "ortcrypt", "split lazy": "lazy"}.get(way, way)
        command = [self.program("bench_load"), mode, subject, self.runtime(runtime), str(int(prepack)), "-" if way == "plain" else self.key]
        if WORKLOADS[workload][0] == "epcontext":
            command.append("ep=" + self.reference_ep())
        if workload == "minilm":
            command += MINILM_INPUTS
        reads = os.path.dirname(subject) if way == "plain" and workload != "minilm" else subject
        return command, reads
