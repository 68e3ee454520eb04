"""Loading models: which cases there are, and one turn through them. A case's ways follow each other, so that a slow moment hits all alike."""

import json
import time

import rig as rigs


NEEDED_TIMES = 2  # of the weights, the documented flow holds,
NEEDED_MORE_MIB = 300  # beside what minilm and everything else needs


def available(runtime, way):
    """Lazy memory needs the buffers of 1.31."""
    return "lazy" not in way or int(runtime.split(".")[1]) >= 31


def cases(arguments):
    """[(workload, runtime, prepacking)], the largest last."""
    return [(workload, runtime, prepack) for workload in rigs.WORKLOADS if workload in arguments.workloads
            for runtime in arguments.runtimes for prepack in (False, True)]


def ways(case):
    """Lazy memory without prepacking only: prepacking touches everything while the session is created."""
    workload, runtime, prepack = case
    return ["plain", *(way for way in rigs.WORKLOADS[workload][2] if available(runtime, way) and not ("lazy" in way and prepack))]


def measure(rig, case, way, cache):
    command, reads = rig.load_command(*case, way)
    if cache == "cold":
        rigs.cool(reads)
    rig.back_memory(NEEDED_MORE_MIB + NEEDED_TIMES * rig.mib * rigs.WORKLOADS[case[0]][1])
    return json.loads(rigs.run(command, env=rig.environment))


def one_case(rig, case, turn, cache, results):
    """Every way of a case once, in an order that changes with the turn; what fails is noted and left out."""
    order = ways(case)
    workload, runtime, prepack = case
    for way in order[turn % len(order):] + order[:turn % len(order)]:
        name = f"{workload}, {runtime}, prepacking {'on' if prepack else 'off'}, {way}, {cache}"
        rigs.progress(f"turn {turn + 1}: {name}")
        try:
            row = measure(rig, case, way, cache)
        except (rigs.Failed, OSError, ValueError) as error:
            results["failures"].append({"what": name, "why": str(error)})
            continue
        results["loads"].append({"workload": workload, "runtime": runtime, "prepacking": prepack, "way": way, "cache": cache, "turn": turn, **row})


def one_turn(rig, arguments, turn, cache, results, deadline):
    """Stops when time runs out. Four times the size takes as long as all the others: every third turn, and when cold not at first."""
    warmed = set()
    for case in cases(arguments):
        if time.monotonic() > deadline:
            return
        if case[0] == "external x4" and turn % 3 != (0 if cache == "warm" else 1):
            continue
        if cache == "warm" and case[0] not in warmed:
            warmed.add(case[0])
            for way in ways((case[0], arguments.runtimes[-1], False)):
                try:
                    rigs.warm(rig.load_command(*case, way)[1])
                except (rigs.Failed, OSError):
                    pass  # its own measurement says why
        one_case(rig, case, turn, cache, results)
