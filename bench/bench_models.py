"""Real models, encrypted, against their plaintext files: create, first inference, peak memory, and the ratios.

Usage: bench_models.py --build FOLDER [--runs 15]

The measurements of bench.py (one process each, interleaved, medians, warm page cache, malloc as it is, prepacking on as is ONNX Runtime's default) on
the models that tools/setup fetched. `seed` is the flow of "Compiled Model Encryption" as documented. Outputs that differ from the
plaintext model's are exit code 1. docs/performance.md has what it printed.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import sys

import rig as rigs

# name: what bench_load feeds it
MODELS = {
    "ppocr_det": ["x=1x3x320x320"],
    "ppocr_rec": ["x=1x3x48x320"],
    "ppocr_cls": ["x=1x3x48x192"],
    "magika": [],
    "minilm_int8": ["input_ids=1x64", "attention_mask=1x64", "token_type_ids=1x64"],
    "silero_vad": ["input=1x576", "sr=:16000"],
}
RUNTIMES = ("1.30.0", "1.32.0")
MODES = ("plain", "seed", "ortcrypt")


def encrypt(build, work):
    """{name: (model, bundle)} and the identity's path; made anew, so that the bundles are those of this build."""
    folder = os.path.join(work, "models")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    key = os.path.join(folder, "key.txt")
    command_line = os.path.join(build, "ortcrypt")
    rigs.run([command_line, "keygen", "-o", key])
    with open(key, encoding="utf-8") as file:
        recipient = re.search(r"age1\w+", file.read())[0]
    inputs = {}
    for name in MODELS:
        model = os.path.join(rigs.DEPS, "models", name + ".onnx")
        bundle = os.path.join(folder, name + ".ortc")
        rigs.run([command_line, "encrypt", model, "-o", bundle, "-r", recipient])
        inputs[name] = (model, bundle)
    return inputs, key


def collect(arguments, inputs, key, environment):
    cases = [(name, runtime) for name in MODELS for runtime in RUNTIMES]
    results = {(case, mode): [] for case in cases for mode in MODES}
    for turn in range(arguments.runs):
        for name, runtime in cases:
            if turn == 0:
                for path in inputs[name]:
                    rigs.warm(path)
            # a mode that always came first would meet the machine in another state
            for mode in MODES[turn % len(MODES):] + MODES[:turn % len(MODES)]:
                rigs.progress(f"run {turn + 1} of {arguments.runs}: {name} {runtime} {mode}")
                library = os.path.join(rigs.DEPS, "ort", runtime, "libonnxruntime.so." + runtime)
                plain = mode == "plain"
                command = [os.path.join(arguments.build, "bench_load"), mode, inputs[name][0 if plain else 1], library, "1", "-" if plain else key]
                results[(name, runtime), mode].append(json.loads(rigs.run([*command, *MODELS[name]], env=environment)))
    rigs.progress("done\n")
    return cases, results


def median(rows, field):
    return statistics.median(row[field] for row in rows)


def ratio(ours, plain, *fields):
    """Median of the ratios of each turn: what slows a whole turn down cancels out."""
    return statistics.median(sum(a[f] for f in fields) / sum(b[f] for f in fields) for a, b in zip(ours, plain))


def tabulate(inputs, cases, results):
    print("| model | MiB | runtime | way | create ms | first run ms | both, x plain | peak MiB | peak, x plain |")
    print("|---|--:|---|---|--:|--:|--:|--:|--:|")
    different = 0
    for case in cases:
        name, runtime = case
        plain = results[case, "plain"]
        size = os.path.getsize(inputs[name][0]) / 2**20
        for mode in MODES:
            rows = results[case, mode]
            note = ""
            if {row["hash"] for row in rows} != {row["hash"] for row in plain}:
                note = " OUTPUT DIFFERS"
                different += 1
            print(f"| {name} | {size:.1f} | {runtime} | {mode} | {1000 * median(rows, 'create_s'):.1f} "
                  f"| {1000 * median(rows, 'first_s'):.1f} | {ratio(rows, plain, 'create_s', 'first_s'):.2f} "
                  f"| {median(rows, 'peak') / 2**20:.1f} | {ratio(rows, plain, 'peak'):.2f}{note} |")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="CMake's build folder (release)")
    parser.add_argument("--runs", type=int, default=15, help="measurements of each kind; the table has medians")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    os.makedirs(rigs.WORK, exist_ok=True)
    environment = rigs.environment("default")
    inputs, key = encrypt(arguments.build, rigs.WORK)
    load = os.getloadavg()[0]
    cases, results = collect(arguments, inputs, key, environment)
    different = tabulate(inputs, cases, results)
    print(f"\n{arguments.runs} runs each, prepacking on, warm page cache; load average before: {load:.1f}; {rigs.machine()}")
    if different:
        sys.exit(f"bench: the outputs of {different} rows differ")


if __name__ == "__main__":
    main()
