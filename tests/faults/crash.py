"""Crash safety, tried: `make crash`. What is tried and why: docs/crash-safety.md.

Usage: crash.py [--every N] [--only WORD] [--keep]
  --every N   only every N-th cut point, of the calls that change files every N/2-th, of the trees after a power cut every N/12-th;
              default 1: all of them
  --only W    only the cases whose name holds W
  --keep      keep the scratch folder
"""
import argparse
import collections
import os
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import sharing
from cuts import commands, interrupted, kill_points, killed, power_cuts
from rig import Lost, Rig

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("ORTCRYPT_SOURCE", os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("ORTCRYPT_BUILD", os.path.join(SOURCE, "build", "release")))
DEPS = os.path.abspath(os.environ.get("ORTCRYPT_DEPS", os.path.join(SOURCE, "build", "deps")))
SHOWN_MAX = 5


class Tally:
    def __init__(self, only):
        self.only = only
        self.passed, self.failed, self.cuts = 0, 0, 0

    def case(self, name, run):
        """`run` returns (cut points, a sentence)."""
        if self.only not in name:
            return
        start = time.monotonic()
        try:
            cuts, sentence = run()
        except Lost as lost:
            self.failed += 1
            print(f"FAILED  {name}: {lost}", flush=True)
            return
        self.passed += 1
        self.cuts += cuts
        print(f"ok      {name}: {sentence} ({time.monotonic() - start:.0f} s)", flush=True)


def sweep(pool, command, points, at_point):
    """at_point for every point. The folder of one that went wrong is kept, and named."""
    states = collections.Counter()
    wrong = []

    def one(n):
        try:
            state, where = at_point(command, n)
            shutil.rmtree(where)
            return state
        except Lost as lost:
            wrong.append(f"at call {n}: {lost}")
            return "wrong"

    states.update(pool.map(one, points))
    if wrong:
        raise Lost(f"{len(wrong)} of {len(points)} points\n        " + "\n        ".join(wrong[:SHOWN_MAX]))
    cuts = states["old"] + states["new"]
    if states["old"] == 0 or states["new"] == 0 and len(points) > 200:
        raise Lost(f"the points missed one side of the commit: {dict(states)}")
    return cuts, f"{cuts} cut points, then {states['old']} times the old state and {states['new']} times the new one"


def power(pool, command, every):
    states = collections.Counter()
    cuts = 0
    for cuts, state, where in power_cuts(command, pool, every):
        states[state] += 1
        if where is not None:
            shutil.rmtree(where)
    trees = states["old"] + states["new"]
    return cuts, f"{cuts} cut points, {trees} different trees: {states['old']} times the old state, {states['new']} times the new one"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and would pass that on
    tally = Tally(options.only)
    rig = Rig(BUILD, DEPS, SOURCE)
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            for command in commands(rig):
                points = kill_points(command, options.every)
                tally.case(f"{command.name}, killed", lambda c=command, p=points: sweep(pool, c, p, killed))
                tally.case(f"{command.name}, interrupted", lambda c=command, p=points: sweep(pool, c, p, interrupted))
                tally.case(f"{command.name}, power cut", lambda c=command: power(pool, c, options.every))
            for name, run in sharing.cases(rig, pool, options.every):
                tally.case(name, run)
    finally:
        if options.keep:
            print(f"kept: {rig.work}")
        else:
            rig.close()
    print(f"{tally.cuts} cut points tried, " + ("and none lost a bundle" if tally.failed == 0 else "not all of them harmless"))
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
