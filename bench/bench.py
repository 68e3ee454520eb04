"""Loading an encrypted model against loading the plaintext file: create, first inference, peak memory, as ratios.

Usage: bench.py --build FOLDER [--mib 512] [--runs 5] [--json FILE]

Each measurement is one process (bench_load). Runs are interleaved, so that a slow moment of the machine hits all alike;
the table has medians. `seed` is the flow of "Compiled Model Encryption" as documented. Rows with a bound are marked met or
MISSED, and a missed bound is exit code 1.
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPS = os.path.join(ROOT, "build", "deps")
MODES = ("plain", "seed", "ortcrypt")
PEAK_BOUND = 1.15  # times the plaintext path load


def bounded(kind, runtime, prepack):
    """Peak memory is bound for embedded weights, and for external data on 1.32.0 without prepacking."""
    return kind == "embedded" or (runtime == "1.32.0" and not prepack)


def progress(text):
    """One line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit("bench: " + " ".join(command) + " ended with exit code " + str(done.returncode) + ": " + done.stderr.strip())
    return done.stdout


def make_model(folder, mib, kind):
    """A chain of MatMuls with `mib` MiB of weights; kept once it is whole."""
    path = os.path.join(folder, kind, "model.onnx")
    if not os.path.exists(path):
        progress(f"making {os.path.relpath(path, ROOT)}")
        new = os.path.join(folder, kind + ".new")
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        run([sys.executable, os.path.join(ROOT, "tests", "models", "make_models.py"), "--big", str(mib), "--kind", kind,
             os.path.join(new, "model.onnx")])
        os.rename(new, os.path.join(folder, kind))
    return path


def make_inputs(build, work, mib):
    """{kind: (model path, bundle path)}, made once per size; and the identity's path."""
    folder = os.path.join(work, f"{mib}-mib")
    key = os.path.join(folder, "key.txt")
    command_line = os.path.join(build, "ortcrypt")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(key):
        run([command_line, "keygen", "-o", key])
    with open(key, encoding="utf-8") as file:
        recipient = re.search(r"age1\w+", file.read())[0]
    inputs = {}
    for kind in ("external", "embedded"):
        model = make_model(folder, mib, kind)
        bundle = model + ".ortc"
        if not os.path.exists(bundle):
            progress(f"encrypting {os.path.relpath(model, ROOT)}")
            run([command_line, "encrypt", model, "-o", bundle, "-r", recipient])
        inputs[kind] = (model, bundle)
    return inputs, key


def warm(path):
    """Reads everything once: the page cache is warm for all alike."""
    paths = [path, *glob.glob(path + ".data"), *glob.glob(os.path.join(path, "**", "*"), recursive=True)]
    for each in paths:
        if os.path.isfile(each):
            with open(each, "rb") as file:
                while file.read(1 << 24):
                    pass


def measure(build, environment, mode, inputs, key, runtime, prepack, shapes=()):
    """One process of bench_load; `shapes` are its INPUT arguments."""
    model, bundle = inputs
    library = os.path.join(DEPS, "ort", runtime, "libonnxruntime.so." + runtime)
    command = [os.path.join(build, "bench_load"), mode, model if mode == "plain" else bundle, library, str(int(prepack))]
    return json.loads(run([*command, "-" if mode == "plain" else key, *shapes], env=environment))


def collect(arguments, work):
    environment = dict(os.environ, ORT_DISABLE_TELEMETRY="1", HOME=work, TMPDIR=work)
    inputs, key = make_inputs(arguments.build, work, arguments.mib)
    runtimes = sorted(os.listdir(os.path.join(DEPS, "ort")))
    runtimes = [r for r in runtimes if r in ("1.30.0", "1.32.0")]
    cases = [(kind, runtime, prepack) for kind in inputs for runtime in runtimes for prepack in (False, True)]
    results = {(case, mode): [] for case in cases for mode in MODES}
    for turn in range(arguments.runs):
        for case in cases:
            kind, runtime, prepack = case
            if turn == 0:
                for path in inputs[kind]:
                    warm(path)
            for mode in MODES:
                progress(f"run {turn + 1} of {arguments.runs}: {kind} {runtime} prepacking {'on' if prepack else 'off'} {mode}")
                results[case, mode].append(measure(arguments.build, environment, mode, inputs[kind], key, runtime, prepack))
    progress("")
    return cases, results


def median(rows, field):
    return statistics.median(row[field] for row in rows)


def tabulate(cases, results):
    """Prints the table; returns (rows for --json, number of bounds missed)."""
    print("| weights | runtime | prepacking | way | create s | first run s | both, x plain | peak MiB | peak, x plain | bound |")
    print("|---|---|---|---|--:|--:|--:|--:|--:|---|")
    rows, missed = [], 0
    for case in cases:
        kind, runtime, prepack = case
        base = {field: median(results[case, "plain"], field) for field in ("create_s", "first_s", "peak")}
        for mode in MODES:
            create, first, peak = (median(results[case, mode], field) for field in ("create_s", "first_s", "peak"))
            time_ratio = (create + first) / (base["create_s"] + base["first_s"])
            peak_ratio = peak / base["peak"]
            verdict = ""
            if mode == "ortcrypt" and bounded(kind, runtime, prepack):
                verdict = "met" if peak_ratio <= PEAK_BOUND else "MISSED"
                missed += verdict == "MISSED"
            if len({row["hash"] for row in results[case, mode]} | {row["hash"] for row in results[case, "plain"]}) != 1:
                verdict += " OUTPUT DIFFERS"
                missed += 1
            print(f"| {kind} | {runtime} | {'on' if prepack else 'off'} | {mode} | {create:.3f} | {first:.3f} | {time_ratio:.2f} "
                  f"| {peak / 2**20:.0f} | {peak_ratio:.2f} | {verdict} |")
            rows.append({"weights": kind, "runtime": runtime, "prepacking": prepack, "way": mode, "create_s": create, "first_s": first,
                         "peak": peak, "peak_ratio": peak_ratio, "time_ratio": time_ratio, "bound": verdict})
    return rows, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="CMake's build folder (release)")
    parser.add_argument("--mib", type=int, default=512, help="size of the weights")
    parser.add_argument("--runs", type=int, default=5, help="measurements of each kind; the table has medians")
    parser.add_argument("--json", help="also write the rows to this file")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    work = os.path.join(ROOT, "build", "bench")
    os.makedirs(work, exist_ok=True)
    cases, results = collect(arguments, work)
    rows, missed = tabulate(cases, results)
    print(f"\n{arguments.mib} MiB of weights, {arguments.runs} runs each, {os.cpu_count()} cores, warm page cache; bound: peak at most "
          f"{PEAK_BOUND} x plain")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if missed:
        sys.exit(f"bench: {missed} bounds missed")


if __name__ == "__main__":
    main()
