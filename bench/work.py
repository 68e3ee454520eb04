"""Encrypting, decrypting, verifying and compiling, beside what others take for the same bytes."""

import json
import os
import re
import shutil
import subprocess
import time

import rig as rigs

SHM = "/dev/shm"
COBBLESTONE = """
import sys, time
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
data = open(sys.argv[1], "rb").read()
start = time.monotonic()
one = Cobblestone256Encryptor(bytes(32), b"bench")
sealed = one.update(data) + one.finalize()
middle = time.monotonic()
other = Cobblestone256Decryptor(bytes(32), b"bench")
same = other.update(sealed) + other.finalize() == data
print(middle - start, time.monotonic() - middle, same)
"""


def timed(command, **more):
    start = time.monotonic()
    rigs.run(command, **more)
    return time.monotonic() - start


def fresh(path):
    """A path that nothing is at."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)
    return path


class Work:
    """One method per measurement; each gives seconds (or bytes, where its name ends with _peak)."""

    def __init__(self, rig):
        self.rig = rig
        self.model = rig.model("external")
        self.data = self.model + ".data"
        self.bundle = rig.bundle("external")
        self.scratch = os.path.join(SHM if os.access(SHM, os.W_OK) else rig.folder, f"ortcrypt-bench-{os.getpid()}")
        os.makedirs(self.scratch, exist_ok=True)

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def encrypt_to(self, folder, model=None, *more):
        out = fresh(os.path.join(folder, "made.ortc"))
        seconds = timed([self.rig.program("ortcrypt"), "encrypt", model or self.model, "-o", out, "-r", self.rig.recipient, *more])
        fresh(out)
        return seconds

    def encrypt_memory(self):
        return self.encrypt_to(self.scratch)

    def encrypt_disk(self):
        return self.encrypt_to(self.rig.folder)

    def encrypt_split_memory(self):
        return self.encrypt_to(self.scratch, self.rig.model("embedded"), "--split")

    def dd_disk(self):
        out = fresh(os.path.join(self.rig.folder, "made.dd"))
        seconds = timed(["dd", "if=" + self.data, "of=" + out, "bs=1M", "conv=fsync", "status=none"])
        fresh(out)
        return seconds

    def age_encrypt_memory(self):
        return timed(["age", "-r", self.rig.recipient, "-o", fresh(os.path.join(self.scratch, "made.age")), self.data])

    def age_decrypt_memory(self):
        sealed = os.path.join(self.scratch, "made.age")
        out = fresh(os.path.join(self.scratch, "made.plain"))
        seconds = timed(["age", "-d", "-i", self.rig.key, "-o", out, sealed])
        fresh(out)
        return seconds

    def decrypt_memory(self):
        out = fresh(os.path.join(self.scratch, "made"))
        seconds = timed([self.rig.program("ortcrypt"), "decrypt", self.bundle, "-i", self.rig.key, "-o", out])
        fresh(out)
        return seconds

    def verify(self):
        return timed([self.rig.program("ortcrypt"), "verify", self.bundle, "-i", self.rig.key])

    def read_decrypt_2_threads(self):
        return json.loads(rigs.run([self.rig.program("bench_read"), "decrypt", self.bundle, self.rig.key, "2"]))["seconds"]

    def read_file(self):
        return json.loads(rigs.run([self.rig.program("bench_read"), "file", self.data, "-", "-"]))["seconds"]

    def openssl_decrypt(self):
        """What `openssl speed` would take for as many bytes on one core, by its own figure."""
        done = subprocess.run(["openssl", "speed", "-evp", "aes-256-gcm", "-decrypt", "-bytes", "16384", "-seconds", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        figure = re.search(r"AES-256-GCM\s+([0-9.]+)k", done.stdout, re.IGNORECASE)
        if figure is None:
            raise rigs.Failed("openssl speed printed no figure")
        return os.path.getsize(self.data) / (float(figure[1]) * 1000)

    def cobblestone(self):
        out = rigs.run([os.path.join(rigs.DEPS, "venv", "bin", "python"), "-c", COBBLESTONE, self.data]).split()
        if out[2] != "True":
            raise rigs.Failed("cryptography did not give the bytes back")
        return {"cobblestone_encrypt": float(out[0]), "cobblestone_decrypt": float(out[1])}

    def compile(self, mode):
        out = fresh(os.path.join(self.rig.folder, "compiled"))
        if mode == "plain":
            os.makedirs(out)
        target = os.path.join(out, "model.onnx") if mode == "plain" else out
        made = json.loads(rigs.run([self.rig.program("bench_compile"), mode, self.model if mode == "plain" else self.bundle, target,
                                    self.rig.runtime("1.32.0"), self.rig.reference_ep(), "-" if mode == "plain" else self.rig.key],
                                   env=self.rig.environment))
        fresh(out)
        return {f"compile_{mode}": made["seconds"], f"compile_{mode}_peak": made["peak"]}


STEPS = ("read_decrypt_2_threads", "read_file", "openssl_decrypt", "encrypt_memory", "age_encrypt_memory", "decrypt_memory", "age_decrypt_memory",
         "encrypt_disk", "dd_disk", "encrypt_split_memory", "verify", "cobblestone")
COMPILES = ("plain", "ortcrypt", "unchecked")


def one_turn(rig, turn, results, compiling):
    """Every measurement once, noted in results["work"]; what fails is noted and left out."""
    try:
        work = Work(rig)
    except (rigs.Failed, OSError) as error:
        results["failures"].append({"what": "encrypting and decrypting", "why": str(error)})
        return
    steps = [(name, getattr(work, name)) for name in STEPS]
    steps += [(f"compile {mode}", lambda mode=mode: work.compile(mode)) for mode in (COMPILES if compiling else ())]
    for name, step in steps:
        rigs.progress(f"turn {turn + 1}: {name}")
        try:
            rig.back_memory(3 * rig.mib)
            value = step()
        except (rigs.Failed, OSError, ValueError) as error:
            results["failures"].append({"what": name, "why": str(error)})
            continue
        for key, number in (value if isinstance(value, dict) else {name: value}).items():
            results["work"].setdefault(key, []).append(number)
    work.close()
