"""Loading an encrypted model beside the plaintext file and the documented flow; encrypting and decrypting beside other tools.

Usage: bench.py --build FOLDER [--minutes 36] [--runs 5] [--mib 512] [--workloads NAME,...] [--runtimes VERSION,...] [--no-cold] [--no-work]
                [--malloc fixed|default] [--write] | --report FILE | --memory

Each measurement is one process. Turns go on until --runs are done or the minutes are over; the first one measures everything once. What is known is kept in
build/bench/results.json after every turn, and is printed on an interrupt too. `--write` puts tables and plot into docs/.
`--memory` is the short form in `make test`: peaks of small models alone, ratios only. Exit code 1: a bound is missed or a measurement failed.
"""

import argparse
import json
import os
import signal
import sys
import time

import loads
import plot
import report
import rig as rigs
import rules
import work

KEPT = os.path.join(rigs.WORK, "results.json")
DOC = os.path.join(rigs.ROOT, "docs", "performance.md")
PICTURE = os.path.join(rigs.ROOT, "docs", "performance.svg")
BEGIN, END = "<!-- make bench: begin -->\n", "<!-- make bench: end -->\n"
COLD_TURNS = 3
WORK_TURNS = 5
SKIPPED = 77  # --memory: what the bounds are about is not possible here


def new_results(arguments):
    return {"machine": rigs.machine(), "mib": arguments.mib, "malloc": arguments.malloc, "load_average": os.getloadavg()[0], "minutes": 0,
            "data_len": 0, "loads": [], "work": {}, "failures": []}


def keep(results):
    results["minutes"] = (time.monotonic() - rigs.STARTED) / 60
    with open(KEPT + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    os.rename(KEPT + ".new", KEPT)


def prepare(rig, arguments, results):
    """Models and bundles first, so that no measurement waits for one. What cannot be made fails again, and is named, where it is needed."""
    for workload in arguments.workloads:
        try:
            rig.model(workload)
            rig.bundle(workload)
            if any(way.startswith("split") for way in rigs.WORKLOADS[workload][2]):
                rig.bundle(workload, split=True)
        except (rigs.Failed, OSError) as error:
            results["failures"].append({"what": "making " + workload, "why": str(error)})
    data = os.path.join(rig.folder, "external-1", "model.onnx.data")
    results["data_len"] = os.path.getsize(data) if os.path.exists(data) else 0


def steps(arguments):
    """(what, turn) in order: everything once, then warm turns, at last more cold ones."""
    for turn in range(arguments.runs):
        yield "warm", turn
        if arguments.work and turn < WORK_TURNS:
            yield "work", turn
        if arguments.cold and turn == 0:
            yield "cold", turn
    for turn in range(1, COLD_TURNS if arguments.cold and arguments.runs > 1 else 1):
        yield "cold", turn


def collect(rig, arguments, results):
    deadline = rigs.STARTED + arguments.minutes * 60
    for what, turn in steps(arguments):
        if time.monotonic() > deadline:
            return
        if what == "work":
            work.one_turn(rig, turn, results, compiling=turn < 3)
        else:
            loads.one_turn(rig, arguments, turn, what, results, deadline)
        keep(results)


def checks_of(results):
    def size_of(workload):
        kind, share, _ = rigs.WORKLOADS[workload]
        return 0 if kind == "minilm" else results["mib"] * share * rules.MIB

    found = list(rules.load_checks(rules.Loads(results["loads"]), size_of))
    return found + (list(rules.work_checks(results["work"], results["data_len"])) if results["work"] else [])


def write_docs(text, results):
    with open(DOC, encoding="utf-8") as file:
        whole = file.read()
    if BEGIN not in whole or END not in whole:
        raise rigs.Failed(f"{DOC} has no place for the tables")
    with open(DOC, "w", encoding="utf-8") as file:
        file.write(whole[:whole.index(BEGIN) + len(BEGIN)] + text + "\n" + whole[whole.index(END):])
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(plot.svg(results))


def show(results, arguments):
    checks = checks_of(results)
    text = "\n".join(report.whole(results, checks))
    print(text)
    with open(os.path.join(rigs.WORK, "performance.svg"), "w", encoding="utf-8") as file:
        file.write(plot.svg(results))
    if arguments.write:
        write_docs(text, results)
    bad = any(each.verdict == "MISSED" for each in checks) or results["failures"] or not checks
    return 1 if bad else 0


def memory_only(arguments):
    """The ratios of peaks with small models: what a change of the loading code would break first."""
    arguments.mib, arguments.workloads, arguments.malloc = 64, ["external", "embedded", "epcontext"], "fixed"
    arguments.runtimes = [version for version in ("1.30.0", "1.32.0") if version in arguments.runtimes]
    rig = rigs.Rig(arguments.build, arguments.mib)
    described = json.loads(rigs.run([rig.program("ortcrypt"), "eps", "--json", "--ort", rig.runtime(arguments.runtimes[-1])], env=rig.environment))
    if not described["kernel"]["userfaultfd"]:
        print("no userfaultfd here: below 2 GiB weights go back into the model, above they are decrypted first")
        return SKIPPED
    results = new_results(arguments)
    prepare(rig, arguments, results)
    for turn in range(arguments.runs):
        loads.one_turn(rig, arguments, turn, "warm", results, float("inf"))
    checks = [each for each in checks_of(results) if each.rule in ("peak / plain", "outputs equal plain's")]
    print("\n".join([*report.check_table(checks), "", report.count(checks), *(f"{f['what']}: {f['why']}" for f in results["failures"])]))
    return 1 if results["failures"] or not checks or any(each.verdict != "met" for each in checks) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="CMake's build folder (release)")
    parser.add_argument("--minutes", type=float, default=36, help="when to stop measuring")
    parser.add_argument("--runs", type=int, default=5, help="turns at most; the tables have medians")
    parser.add_argument("--mib", type=int, default=512, help="size of the weights")
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(rigs.WORKLOADS), help="of: " + ", ".join(rigs.WORKLOADS))
    parser.add_argument("--runtimes", type=lambda text: text.split(","), default=list(rigs.RUNTIMES))
    parser.add_argument("--no-cold", dest="cold", action="store_false", help="leave the cold page cache out")
    parser.add_argument("--no-work", dest="work", action="store_false", help="leave encrypting, decrypting and compiling out")
    parser.add_argument("--malloc", choices=("fixed", "default"), default="fixed", help="glibc's mmap threshold, for every way alike")
    parser.add_argument("--write", action="store_true", help="put the result into docs/")
    parser.add_argument("--report", metavar="FILE", help="only print what an earlier run kept")
    parser.add_argument("--memory", action="store_true", help="peaks of 64 MiB models alone")
    return parser.parse_args()


def main():
    arguments = parse()
    unknown = [name for name in arguments.workloads if name not in rigs.WORKLOADS]
    if unknown:
        sys.exit("bench: there is no workload " + unknown[0])
    os.makedirs(rigs.WORK, exist_ok=True)
    if arguments.report:
        with open(arguments.report, encoding="utf-8") as file:
            sys.exit(show(json.load(file), arguments))
    missing = [v for v in arguments.runtimes if not os.path.exists(os.path.join(rigs.DEPS, "ort", v))]
    arguments.runtimes = [v for v in arguments.runtimes if v not in missing]
    if not arguments.runtimes:
        sys.exit("bench: no runtime is here; make setup fetches them")
    if arguments.memory:
        sys.exit(memory_only(arguments))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results = new_results(arguments)
    results["failures"] += [{"what": "ONNX Runtime " + version, "why": "it is not here: tools/setup --runtime " + version} for version in missing]
    try:
        rig = rigs.Rig(arguments.build, arguments.mib, arguments.malloc)
        prepare(rig, arguments, results)
        collect(rig, arguments, results)
    except KeyboardInterrupt:
        rigs.progress("interrupted; this is what was measured\n")
    keep(results)
    rigs.progress("done\n")
    sys.exit(show(results, arguments))


if __name__ == "__main__":
    main()
