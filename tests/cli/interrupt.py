"""Interrupts a command again and again, each time later, and checks that it leaves nothing behind.

Usage: interrupt.py COUNT OUTPUT|- BUNDLE|- -- COMMAND...

The command runs once to its end to see how long that takes; what it makes (OUTPUT) is removed. Then it runs COUNT times and gets
SIGINT after 0/COUNT, 1/COUNT, ... of that time. Either it finishes (exit code 0, the output is there), or it ends with exit code 1
and one sentence (by the signal itself, before it was ready), and then: no OUTPUT, no other new file beside it, and of BUNDLE (which
the command changes) the same files as before. An unexpected end is printed, and the exit code is 1. Prints how many were stopped.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

count, output, bundle = int(sys.argv[1]), sys.argv[2], sys.argv[3]
command = sys.argv[sys.argv.index("--") + 1:]
folder = os.path.dirname(os.path.abspath(output if output != "-" else bundle))


def files():
    """Every path here with size and inode; the output is known by its name only."""
    found = set()
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(base, name)
            found.add((path, 0 if name in folders else os.stat(path).st_size, os.stat(path).st_ino))
    return found


def run(seconds):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    return process.returncode, errors


def reset(original):
    if output != "-":
        shutil.rmtree(output)
    else:
        shutil.rmtree(bundle)
        shutil.copytree(original, bundle)


original = bundle + ".original"
if output == "-":
    shutil.copytree(bundle, original)
start = time.monotonic()
code, errors = run(None)
whole = time.monotonic() - start
if code != 0:
    sys.exit(f"not interrupted: exit code {code}: {errors}")
reset(original)
stopped = 0
for i in range(count):
    before = files()
    code, errors = run(whole * i / count)
    after = files()
    if code == 0:
        reset(original)
    elif code != -signal.SIGINT and (code != 1 or "stopped by a signal" not in errors):
        sys.exit(f"interrupted after {whole * i / count:.4f} s: exit code {code}: {errors}")
    if code != 0 and after != before:
        sys.exit(f"interrupted after {whole * i / count:.4f} s: {sorted(after ^ before)}")
    stopped += code != 0
shutil.rmtree(original, ignore_errors=True)
print(f"{stopped} of {count} stopped")
