"""Every ONNX Runtime from 1.23 to 1.32 with every EP: compile, load, compare. `make matrix`; `make test` runs the quick subset.

Usage: matrix.py [--quick] [--runtime VERSION]... [--ep WORD]... [--jobs N] [--keep] [--write]
  --quick      three runtimes, and small models for QNN
  --runtime V  only these; --ep WORD: only EPs whose name holds the word
  --write      copy what was measured into README.md and docs/support.md
Writes build/matrix.md (quick and partial runs: build/matrix-part.md). Ends with a count; exit code 1 when a cell failed, or when README.md
says something else than what was measured.
"""
import argparse
import collections
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import controls
import table
from rig import QUICK, RUNTIMES, Broken, Pair, Rig

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("ORTCRYPT_SOURCE", os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("ORTCRYPT_BUILD", os.path.join(SOURCE, "build", "release")))
DEPS = os.path.abspath(os.environ.get("ORTCRYPT_DEPS", os.path.join(SOURCE, "build", "deps")))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runtime", action="append", choices=RUNTIMES)
    parser.add_argument("--ep", action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def try_controls(rig):
    failed = 0
    for control in controls.ALL:
        try:
            print("seen    " + control(rig), flush=True)
        except Broken as broken:
            failed += 1
            print(f"FAILED  control {control.__name__}: {broken}", flush=True)
    return failed


def try_pair(rig, runtime, ep):
    start = time.monotonic()
    pair = Pair(rig, runtime, ep)
    cells = [pair.cell(embed) for embed in (0, 1)]
    for cell in cells:
        print(f"{cell.result.upper() if cell.result == 'failed' else cell.result:7} {runtime:6} {ep.title:14} embed {cell.embed} {cell.route:9} "
              f"{cell.reason}", flush=True)
    if not rig.keep and all(cell.result != "failed" for cell in cells):
        shutil.rmtree(pair.where)
    return cells, time.monotonic() - start


def main():
    options = arguments()
    start = time.monotonic()
    runtimes = options.runtime or (QUICK if options.quick else RUNTIMES)
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 30 else None
    work = os.path.realpath(tempfile.mkdtemp(prefix="ortcrypt-matrix-", dir=base))
    rig = Rig(work, BUILD, DEPS, options.quick)
    rig.keep = options.keep
    eps = [ep for ep in rig.eps if not options.ep or any(word in ep.name for word in options.ep)]
    failed = try_controls(rig)
    with ThreadPoolExecutor(options.jobs) as pool:
        tried = [pool.submit(try_pair, rig, runtime, ep) for runtime in runtimes for ep in eps]
        cells = [cell for future in tried for cell in future.result()[0]]
    whole = len(cells) == 2 * len(RUNTIMES) * len(rig.eps) and not options.quick
    text = table.details(cells)
    path = os.path.join(SOURCE, "build", "matrix.md" if whole else "matrix-part.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(table.summary(cells, rig.eps) + "\n" + text)
    print("\n" + text)
    if options.write:
        table.write(SOURCE, cells, rig.eps)
    breaches = list(table.differences(SOURCE, cells, rig.eps))
    for breach in breaches:
        print("DIFFERS " + breach)
    if breaches:
        print("what was measured is not what README.md and docs/support.md say: make matrix-write copies it")
    count = collections.Counter(cell.result for cell in cells)
    failed += count["failed"]
    if options.keep or failed:
        print("what was tried is in " + work)
    else:
        shutil.rmtree(work)
    print(f"{time.monotonic() - start:.0f} s on {os.cpu_count()} processors; the table is in {os.path.relpath(path, SOURCE)}")
    print(f"{count['passed']} passed, {count['refused']} refused, {failed} failed")
    return 1 if failed or breaches else 0


if __name__ == "__main__":
    sys.exit(main())
