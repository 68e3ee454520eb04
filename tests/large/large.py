#!/usr/bin/env python3
"""Weights of 2 GiB and more: encrypted, verified, restored, loaded, compiled and run for real, with the memory that it takes. `make large` runs it.

Usage: large.py --build FOLDER [--gib 3] [--runtime 1.32.0] [--only-store] [--work FOLDER]

The model adds two rows, one from each of two tensors that share one sparse file; rows at both ends of both tensors hold known numbers, so an
offset that is cut to 32 bits gives other sums. --only-store leaves out what needs the weights in memory: --gib 20 --only-store needs 20 GiB of disk.
Exit code 1: something is not as it must be.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROW = 1024  # floats
STREAM_MAX = 256 * 2**20  # bytes a verb that streams may hold
MARKS = {("a", 0): 1, ("a", -1): 2, ("b", 0): 10, ("b", -1): 20}


class Wrong(Exception):
    pass


def make_model(folder, gib):
    """Two tensors [rows, ROW] in one file with holes; returns rows."""
    rows = int(gib * 2**30) // (ROW * 4) // 2
    half = rows * ROW * 4
    tensors = []
    with open(os.path.join(folder, "weights.bin"), "wb") as file:
        file.truncate(2 * half)
        for name, start in (("a", 0), ("b", half)):
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[rows, ROW], data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "weights.bin"), ("offset", start), ("length", half)):
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            for row in (0, -1):
                file.seek(start + row % rows * ROW * 4)
                file.write(np.full(ROW, MARKS[name, row], np.float32).tobytes())
    nodes = [helper.make_node("Gather", ["a", "i"], ["p"]), helper.make_node("Gather", ["b", "i"], ["q"]), helper.make_node("Add", ["p", "q"], ["y"])]
    graph = helper.make_graph(nodes, "large", [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, ROW])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), os.path.join(folder, "model.onnx"))
    np.save(os.path.join(folder, "i.npy"), np.array([0, rows - 1], np.int64))
    return rows


class Large:
    def __init__(self, arguments, work):
        self.program = os.path.join(os.path.abspath(arguments.build), "ortcrypt")
        self.library = os.path.join(ROOT, "build", "deps", "ort", arguments.runtime, "libonnxruntime.so." + arguments.runtime)
        self.work = work
        self.environment = dict(os.environ, ORT_DISABLE_TELEMETRY="1", HOME=work, TMPDIR=work)
        self.key = self.path("key.txt")
        subprocess.run([self.program, "keygen", "-o", self.key], check=True, stderr=subprocess.DEVNULL)
        with open(self.key, encoding="utf-8") as file:
            self.recipient = re.search(r"age1\w+", file.read())[0]

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, *words, most=None):
        """One verb, with what it took; `most`: bytes it may hold."""
        start = time.monotonic()
        with subprocess.Popen([self.program, *words], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * 1024
        print(f"{words[0]:8} {time.monotonic() - start:7.1f} s, peak {peak / 2**20:8.0f} MiB", flush=True)
        if child.returncode != 0:
            raise Wrong(f"{words[0]}: {said.strip()}")
        if most is not None and peak > most:
            raise Wrong(f"{words[0]} held {peak / 2**20:.0f} MiB, more than {most / 2**20:.0f}")

    def check_sums(self, bundle, *more):
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        self.run("run", bundle, "-i", self.key, "--ort", self.library, "--input", "i=" + self.path("i.npy"), "--output", out, *more)
        sums = np.load(os.path.join(out, "y.npy"))
        for row, mark in ((0, 0), (1, -1)):
            wanted = MARKS["a", mark] + MARKS["b", mark]
            if not (sums[row] == wanted).all():
                raise Wrong(f"row {row} is {sums[row][0]}, not {wanted}")

    def check_restored(self, rows):
        """Marks and size of the restored file; reading holes as well would take as long as encrypting."""
        half = rows * ROW * 4
        path = os.path.join(self.path("back"), "weights.bin")
        if os.path.getsize(path) != 2 * half:
            raise Wrong("the restored file has another size")
        with open(path, "rb") as file:
            for (name, row), value in MARKS.items():
                file.seek((half if name == "b" else 0) + row % rows * ROW * 4)
                if not (np.frombuffer(file.read(ROW * 4), np.float32) == value).all():
                    raise Wrong(f"tensor {name} came back otherwise")


def check(large, arguments, rows):
    bundle, key = large.path("model.ortc"), large.key
    large.run("encrypt", large.path("model.onnx"), "-o", bundle, "-r", large.recipient, most=STREAM_MAX)
    os.remove(large.path("weights.bin"))  # what comes now has the bundle alone
    large.run("verify", bundle, "-i", key, most=STREAM_MAX)
    if arguments.only_store:
        return
    large.run("decrypt", bundle, "-i", key, "-o", large.path("back"), most=STREAM_MAX)
    large.check_restored(rows)
    shutil.rmtree(large.path("back"))
    large.check_sums(bundle)
    if rows * ROW * 4 < 2**31 - 2**20:  # one engine of the reference EP holds one tensor, and stays below protobuf's limit
        compiled = large.path("compiled.ortc")
        large.run("compile", bundle, "-i", key, "-o", compiled, "--ort", large.library, "--ep", "OrtcryptReference", "--ep-option", "max_nodes_per_engine=1")
        large.check_sums(compiled, "--ep", "OrtcryptReference")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--gib", type=float, default=3)
    parser.add_argument("--runtime", default="1.32.0")
    parser.add_argument("--only-store", action="store_true")
    parser.add_argument("--work", help="a folder on a file system with room (default: build/)")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="large-", dir=arguments.work or os.path.join(ROOT, "build")) as work:
        try:
            rows = make_model(work, arguments.gib)
            check(Large(arguments, work), arguments, rows)
        except (Wrong, OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"large: {error}")
    print(f"{arguments.gib:g} GiB of weights: all as it must be")


if __name__ == "__main__":
    main()
