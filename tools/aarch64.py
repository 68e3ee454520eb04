#!/usr/bin/env python3
"""Cross-builds for aarch64 and runs the tests under qemu-user: what `make test-aarch64` does.

    tools/aarch64.py [--jobs N] [--only REGEX] [--setup-only]

Nothing of this machine changes but three Debian packages (compilers, qemu-user). The arm64 libraries are downloaded by an apt
with lists of its own (build/cache/aarch64-apt; signatures are checked as always) and unpacked into build/deps/aarch64/sysroot.
ONNX Runtime comes from its aarch64 wheel, pinned in tools/pins.json. What an emulator cannot run is in tools/aarch64_skips.json,
each with its reason; it is counted, and the last line is `N passed, N failed, N skipped`.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import fetch  # noqa: E402  (tools/fetch.py: the same downloads, pins and stamps)

ROOT = fetch.ROOT
HOME = os.path.join(fetch.DEPS, "aarch64")
SYSROOT = os.path.join(HOME, "sysroot")
BUILD = os.path.join(ROOT, "build", "aarch64")
VIEW = os.path.join(BUILD, "view")  # what the tests take for ORTCRYPT_BUILD and, in deps/, for ORTCRYPT_DEPS
QEMU = ["qemu-aarch64", "-L", SYSROOT]
HOST_PACKAGES = {"gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc", "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++",
                 "qemu-user": "qemu-aarch64"}
TIMEOUT = 1500  # seconds for one program or one .bats file, on a busy machine

APT_CONF = """APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::State "{0}";
Dir::State::lists "{0}/lists";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
"""


def host_packages():
    missing = [package for package, program in HOST_PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise fetch.SetupError("some Debian packages are missing; install them as root with: " + " ".join(install))
    fetch.say("installing Debian packages: " + " ".join(missing))
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    sentence = "Debian packages could not be installed from the package mirror: " + " ".join(missing)
    fetch.run(["apt-get", "update"], "apt.log", sentence, env=environment)
    fetch.run(install, "apt.log", sentence, env=environment)


def relative_links(root):
    """Links to absolute paths (libz.so) would lead out of the sysroot."""
    for folder, folders, names in os.walk(root):
        for name in folders + names:
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.readlink(path).startswith("/"):
                target = os.path.relpath(root + os.readlink(path), folder)
                os.unlink(path)
                os.symlink(target, path)


def cpuinfo(root):
    """qemu shows programs the /proc/cpuinfo of this machine, of which ONNX Runtime complains; a file in the sysroot goes first."""
    os.makedirs(os.path.join(root, "proc"))
    with open(os.path.join(root, "proc", "cpuinfo"), "w", encoding="utf-8") as file:
        for number in range(os.cpu_count() or 1):
            file.write("processor\t: %d\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd aes pmull sha1 sha2 crc32\nCPU implementer\t: 0x41\n"
                       "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd07\nCPU revision\t: 0\n\n" % number)


def sysroot(packages):
    mark = " ".join(packages)
    if fetch.stamp_is("aarch64-sysroot", mark) and os.path.isdir(SYSROOT):
        return
    fetch.say("fetching Debian's arm64 libraries")
    apt = os.path.join(fetch.CACHE, "aarch64-apt")
    for folder in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(apt, folder), exist_ok=True)
    with open(os.path.join(apt, "status"), "w", encoding="utf-8"):
        pass
    conf = os.path.join(apt, "apt.conf")
    with open(conf, "w", encoding="utf-8") as file:
        file.write(APT_CONF.format(apt))
    environment = dict(os.environ, APT_CONFIG=conf)
    sentence = "Debian's arm64 libraries could not be fetched from the package mirror"
    fetch.run(["apt-get", "update"], "aarch64-apt.log", sentence, env=environment)
    debs = fetch.scratch_folder(os.path.join(apt, "debs"))
    fetch.run(["apt-get", "download", *packages], "aarch64-apt.log", sentence, env=environment, cwd=debs)
    os.makedirs(HOME, exist_ok=True)
    new = fetch.scratch_folder(SYSROOT)
    for deb in sorted(glob.glob(os.path.join(debs, "*.deb"))):
        fetch.run(["dpkg-deb", "-x", deb, new], "aarch64-apt.log", os.path.basename(deb) + " could not be unpacked")
    relative_links(new)
    cpuinfo(new)
    fetch.replace_folder(new, SYSROOT)
    shutil.rmtree(debs)
    fetch.stamp_write("aarch64-sysroot", mark)


def build(jobs):
    for command in (["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "--log-level=NOTICE", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                     "-DORTCRYPT_WERROR=ON", "--toolchain", os.path.join(ROOT, "cmake", "aarch64-toolchain.cmake")],
                    ["cmake", "--build", BUILD, "-j" + str(jobs)]):
        if subprocess.run(command, check=False).returncode != 0:
            raise fetch.SetupError("the aarch64 build stopped")


def wrapper(name):
    """A program of the build that runs under qemu by itself, for tests that are scripts of this machine."""
    path = os.path.join(VIEW, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec '" + "' '".join([*QEMU, os.path.join(BUILD, name)]) + "' \"$@\"\n")
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def view():
    shutil.rmtree(VIEW, ignore_errors=True)
    os.makedirs(os.path.join(VIEW, "deps"))
    for name in ("models", "testmodels", "vectors", "venv"):
        os.symlink(os.path.join(fetch.DEPS, name), os.path.join(VIEW, "deps", name))
    os.symlink(os.path.join(HOME, "ort"), os.path.join(VIEW, "deps", "ort"))
    for name in ("libortcrypt_reference_ep.so", "libortcrypt_ep_cpp.so", "libortcrypt_bridge.so", "generated", "fakes"):
        os.symlink(os.path.join(BUILD, name), os.path.join(VIEW, name))
    wrapper("ortcrypt")
    wrapper("find_plaintext")
    os.makedirs(os.path.join(VIEW, "tests"))
    wrapper("tests/test_onnx_models")


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.reasons = {}

    def skip(self, reason, count=1):
        self.skipped += count
        self.reasons[reason] = self.reasons.get(reason, 0) + count

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        for reason, count in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count


def run(command, environment):
    """Exit code and everything it said. Its own process group: qemu's children go with it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=environment, cwd=ROOT, start_new_session=True)
    try:
        output = process.communicate(timeout=TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return -1, process.communicate()[0].decode(errors="replace") + "\nstopped after %d s\n" % TIMEOUT
    return process.returncode, output.decode(errors="replace")


def run_cmocka(program, environment, skips):
    """A listed test that does not pass is skipped only if it says what the list expects of it."""
    tally = Tally()
    code, output = run([*QEMU, program], environment)
    pending = ""
    excused = 0
    for line in output.splitlines():
        result = re.match(r"\[\s+(OK|FAILED|SKIPPED)\s+\] (\w+)$", line)
        if re.match(r"\[  (PASSED|FAILED)  \] \d+ test|\[=+\] \d+ test\(s\) run", line):
            break
        if result is None:
            pending += line + "\n"
            continue
        outcome, name = result.groups()
        skip = skips.get(os.path.basename(program) + "/" + name)
        if outcome == "OK":
            tally.passed += 1
        elif outcome == "SKIPPED":
            tally.skip("the test says so")
        elif skip is not None and re.search(skip["says"], pending):
            tally.skip(skip["reason"])
            excused += 1
        else:
            tally.failed += 1
        pending = ""
    if tally.failed == 0 and code != excused:
        tally.failed = 1  # died on the way, or the group's set-up did not work
    return tally, output


def run_bats(path, environment, skips):
    tally = Tally()
    command = ["bats", "--tap"]
    with open(path, encoding="utf-8") as file:
        names = re.findall(r'^@test "(.*)" \{', file.read(), re.MULTILINE)
    left_out = {}
    for pattern, reason in skips["bats"].get(os.path.basename(path), {}).items():
        hits = [name for name in names if re.search(pattern, name)]
        if not hits:
            tally.failed += 1
            return tally, "tools/aarch64_skips.json names no test of this file with: " + pattern
        left_out.update(dict.fromkeys(hits, reason))
    for reason in left_out.values():
        tally.skip(reason)
    if left_out:
        wanted = [re.sub(r"([\\.\[\](){}*+?^$|])", r"\\\1", name) for name in names if name not in left_out]
        if not wanted:
            return tally, ""
        command += ["--filter", "^(" + "|".join(wanted) + ")$"]
    output = run([*command, path], environment)[1]
    failed = []
    blocks = re.split(r"^(?=ok |not ok )", output, flags=re.MULTILINE)[1:]
    for block in blocks:
        skipped = re.match(r"ok .*# skip ?(.*)", block)
        excuse = next((rule["reason"] for rule in skips["bats_that_say"] if re.search(rule["says"], block)), None)
        if skipped:
            tally.skip(skipped.group(1) or "the test says so")
        elif block.startswith("ok "):
            tally.passed += 1
        elif excuse:
            tally.skip(excuse)
        else:
            tally.failed += 1
            failed.append(block)
    if len(blocks) != len(names) - len(left_out):
        tally.failed += 1  # it stopped on the way
        return tally, output
    return tally, "".join(failed)


def run_scanner(environment):
    """tests/unit/test_onnx_models.c starts itself through Python, which cannot start an aarch64 program: the same from here."""
    tally = Tally()
    code, output = run([os.path.join(VIEW, "deps", "venv", "bin", "python"), os.path.join(ROOT, "tests", "models", "diff_scan.py"),
                        "--mutations", "2000", os.path.join(VIEW, "tests", "test_onnx_models"), os.path.join(VIEW, "deps")], environment)
    tally.passed, tally.failed = (1, 0) if code == 0 else (0, 1)
    return tally, output


def programs(skips):
    """(name, function that runs it) of everything, the slow ones first, and a tally of the programs left out."""
    left_out = Tally()
    work = []
    version = skips["runtime"]
    environment = dict(os.environ, ORTCRYPT_SOURCE=ROOT, ORTCRYPT_BUILD=VIEW, ORTCRYPT_DEPS=os.path.join(VIEW, "deps"),
                       ORT_DISABLE_TELEMETRY="1", PYTHONDONTWRITEBYTECODE="1")
    runtime = os.path.join(VIEW, "deps", "ort", version, "libonnxruntime.so." + version)
    bats = dict(environment, ORTCRYPT_OLD_RUNTIME=runtime, ORTCRYPT_NEW_RUNTIME=runtime)
    sources = [path for folder in ("unit", "vectors", "ort", "fakes") for path in sorted(glob.glob(os.path.join(ROOT, "tests", folder, "test_*.c")))]
    for source in sources:
        name = os.path.basename(source)[:-2]
        place = os.path.relpath(source, os.path.join(ROOT, "tests"))
        reason = next((why for pattern, why in skips["programs"].items() if re.search(pattern, place)), None)
        if name == "test_onnx_models":
            work.append((name, lambda: run_scanner(environment)))
        elif reason is not None:
            left_out.skip(reason)
        else:
            home = ["fakes"] if place.startswith("fakes/") else []
            work.append((name, lambda path=os.path.join(BUILD, "tests", *home, name): run_cmocka(path, environment, skips["tests"])))
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "cli", "*.bats"))) + [os.path.join(ROOT, "tools", "aarch64.bats")]:
        work.append((os.path.basename(path), lambda path=path: run_bats(path, bats, skips)))
    work.sort(key=lambda entry: skips["slow"].index(entry[0]) if entry[0] in skips["slow"] else len(skips["slow"]))
    return work, left_out


def timed(entry):
    start = time.monotonic()
    return entry[0], entry[1](), time.monotonic() - start


def test(skips, jobs, only):
    work, total = programs(skips)
    if only:
        work, total = [entry for entry in work if re.search(only, entry[0])], Tally()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(timed, entry) for entry in work]):
            name, (tally, output), seconds = done.result()
            print("%-28s %3d passed, %d failed, %d skipped  %4.0f s" % (name, tally.passed, tally.failed, tally.skipped, seconds), flush=True)
            if tally.failed:
                print("    " + "\n    ".join(output.splitlines()[-200:]), flush=True)
            total.add(tally)
    for reason, count in sorted(total.reasons.items()):
        print("skipped %d: %s" % (count, reason))
    print("%d passed, %d failed, %d skipped" % (total.passed, total.failed, total.skipped))
    return 1 if total.failed or not total.passed else 0


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and the tests would get that
    parser = argparse.ArgumentParser(prog="tools/aarch64.py", description="cross-builds for aarch64 and tests under qemu-user")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--only", metavar="REGEX", help="only test programs and .bats files whose name has it")
    parser.add_argument("--setup-only", action="store_true", help="sysroot, runtime and build, no tests")
    arguments = parser.parse_args()
    with open(os.path.join(ROOT, "tools", "pins.json"), encoding="utf-8") as file:
        pins = json.load(file)["aarch64"]
    with open(os.path.join(ROOT, "tools", "aarch64_skips.json"), encoding="utf-8") as file:
        skips = json.load(file)
    skips["runtime"] = pins["runtime"]
    host_packages()
    sysroot(pins["packages"])
    fetch.setup_runtime(pins["runtime"], [pins["sha256"]], "aarch64")
    build(arguments.jobs)
    view()
    return 0 if arguments.setup_only else test(skips, arguments.jobs, arguments.only)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except fetch.SetupError as problem:
        print("tools/aarch64.py: " + str(problem), file=sys.stderr)
        sys.exit(1)
