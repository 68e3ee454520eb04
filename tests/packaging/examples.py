"""The programs of examples/ on a real model, with every runtime that is tested; their results against the plaintext model's.

Environment: ORTCRYPT_BUILD (command line, examples/, reference EP) and ORTCRYPT_DEPS (model, runtimes). Usage: examples.py
"""

import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

BUILD, DEPS = os.environ["ORTCRYPT_BUILD"], os.environ["ORTCRYPT_DEPS"]
VERSIONS = ["1.30.0", "1.32.0"]
MODEL = os.path.join(DEPS, "models", "ppocr_rec.onnx")
EP = os.path.join(BUILD, "libortcrypt_reference_ep.so")
PROGRAMS = ["whole_app", "own_session", "app"]


def run(*command, code=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


def example(name, *arguments, code=0):
    return run(os.path.join(BUILD, "examples", name), *arguments, code=code)


def plaintext():
    """(class, probability) of every step, from ONNX Runtime's Python package: nothing of ortcrypt takes part."""
    image = (numpy.arange(3 * 48 * 320) * 37 % 101).astype(numpy.float32) / numpy.float32(50) - numpy.float32(1)
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    steps = session.run(None, {"x": image.reshape(1, 3, 48, 320)})[0][0]
    return [(int(step.argmax()), float(step.max())) for step in steps]


def compare(what, text, wanted):
    got = [(int(line.split()[0]), float(line.split()[1])) for line in text.splitlines()]
    if [best for best, _ in got] != [best for best, _ in wanted]:
        sys.exit(f"{what}: other classes than the plaintext model\n{text}")
    worst = max(abs(a - b) for (_, a), (_, b) in zip(got, wanted))
    if not worst <= 1e-5:
        sys.exit(f"{what}: off by {worst} in a probability")


def refusals(bundle, key, other, library):
    """One sentence and no crash for a wrong key, a missing bundle, a library that is none, and a second variant of one name."""
    for name in PROGRAMS:
        for arguments in ((bundle, other, library), (bundle + "x", key, library), (bundle, key, key), (bundle, key, library, key)):
            done = example(name, *arguments, code=1)
            if done.stdout or not done.stderr.strip():
                sys.exit(f"{name} {arguments}: no sentence\n{done.stdout}{done.stderr}")
    for arguments in ((bundle, other, library, EP), (bundle, key, key, EP), (bundle, key, library, key)):
        example("own_compile", *arguments, code=1)


def main():
    wanted = plaintext()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, TMPDIR=folder)
        command_line = os.path.join(BUILD, "ortcrypt")
        key, other = os.path.join(folder, "key.txt"), os.path.join(folder, "other.txt")
        recipient = run(command_line, "keygen", "-o", key).stderr.split()[-1]
        run(command_line, "keygen", "-o", other)
        for version in VERSIONS:
            library = os.path.join(DEPS, "ort", version, "libonnxruntime.so." + version)
            bundle = os.path.join(folder, version + ".ortc")
            run(command_line, "encrypt", MODEL, "-o", bundle, "-r", recipient)
            refusals(bundle, key, other, library)
            for name in PROGRAMS:
                compare(f"{name}, source, {version}", example(name, bundle, key, library).stdout, wanted)
                example(name, bundle, key, library, EP, code=1)  # nothing was compiled yet
            variants = [example("own_compile", bundle, key, library, EP).stdout.strip() for _ in range(2)]
            if variants != ["ortcryptreference-1", "ortcryptreference-2"]:
                sys.exit(f"own_compile made {variants}")
            for name in PROGRAMS:
                compare(f"{name}, compiled, {version}", example(name, bundle, key, library, EP).stdout, wanted)
            run(command_line, "verify", bundle, "-i", key)
    print(f"{len(PROGRAMS) + 1} examples, {len(VERSIONS)} runtimes, {len(wanted)} steps each: equal to the plaintext model")


if __name__ == "__main__":
    main()
