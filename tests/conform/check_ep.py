"""check-ep against EPs whose results are known. Usage: check_ep.py [--write] CASE...  (ORTCRYPT_BUILD, ORTCRYPT_DEPS in the environment)

A case is EP@RUNTIME ("qnn@1.30.0"). What `ortcrypt check-ep --json` says is compared with expected/EP@RUNTIME.txt: models and rows with
their verdicts, and the exit code. --write makes that file instead, to be read by a person before it is kept.
For EPs with one fault (broken-FAULT) exactly one row fails. No run leaves a file behind.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, DEPS = os.environ["ORTCRYPT_BUILD"], os.environ["ORTCRYPT_DEPS"]
LIBRARIES = {
    "reference": (os.path.join(BUILD, "libortcrypt_reference_ep.so"), []),
    "cpp": (os.path.join(BUILD, "libortcrypt_ep_cpp.so"), []),
    "qnn": (os.path.join(DEPS, "eps/qnn/onnxruntime_qnn/libonnxruntime_providers_qnn.so"), ["backend_type=htp", "soc_model=57"]),
    "openvino": (os.path.join(BUILD, "libortcrypt_openvino_rig.so"), []),
}


def library_of(name):
    if name.startswith("broken-"):
        return os.path.join(BUILD, "broken", f"libortcrypt_broken_{name.removeprefix('broken-')}.so"), []
    return LIBRARIES[name]


def check(case, scratch):
    """(lines of verdicts, report)"""
    name, version = case.split("@")
    library, options = library_of(name)
    command = [os.path.join(BUILD, "ortcrypt"), "check-ep", library, "--json", "--ort",
               os.path.join(DEPS, "ort", version, f"libonnxruntime.so.{version}")]
    for option in options:
        command += ["--ep-option", option]
    environment = dict(os.environ, HOME=scratch, TMPDIR=scratch)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=scratch, check=False)
    report = json.loads(done.stdout)
    if "rows" not in report:
        sys.exit(f"{case}: {done.stderr}")
    if report["runtime"] != version:
        sys.exit(f"{case}: the runtime says it is {report['runtime']}")
    left = [os.path.join(where, file) for where, _, files in os.walk(scratch) for file in files]
    if left:
        sys.exit(f"{case}: left behind: {left}")
    failing = [row["name"] for row in report["rows"] if row["verdict"] == "fails"]
    if report["holds"] != (not failing) or (done.returncode == 1) != bool(failing) or ("error" in report) != bool(failing):
        sys.exit(f"{case}: exit code {done.returncode}, but what fails is {failing}")
    lines = [f"exit {done.returncode}"]
    lines += [f"model {model['name']} {model['verdict']}" for model in report["models"]]
    lines += [f"{row['name']} {row['verdict']}" for row in report["rows"]]
    return lines, report


def compare(case, lines, report):
    with open(os.path.join(HERE, "expected", case + ".txt"), encoding="utf-8") as file:
        expected = file.read().splitlines()
    if case.startswith("broken-") and sum(line.endswith(" fails") for line in expected) != (0 if "broken-none" in case else 1):
        sys.exit(f"{case}: an EP with one fault has one row that fails")
    if lines != expected:
        details = {row["name"]: row["detail"] for row in report["rows"]}
        for line in sorted(set(lines) ^ set(expected)):
            print(f"{'got   ' if line in lines else 'wanted'} {line}   {details.get(line.split()[0], '')}")
        sys.exit(f"{case}: not what is expected")


def main():
    arguments = sys.argv[1:]
    write = "--write" in arguments
    for case in [argument for argument in arguments if argument != "--write"]:
        with tempfile.TemporaryDirectory() as scratch:
            lines, report = check(case, scratch)
        if write:
            with open(os.path.join(HERE, "expected", case + ".txt"), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        else:
            compare(case, lines, report)
        print(f"{case}: {lines[0]}, {sum(line.endswith(' fails') for line in lines)} rows fail")


if __name__ == "__main__":
    main()
