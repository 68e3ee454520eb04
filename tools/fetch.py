"""What tools/setup fetches: headers, runtimes, models, a Python environment, test vectors; and the generated test models.

Every download is pinned by version and SHA-256 (tools/pins.json, tools/requirements.txt), made with the registries' own
clients (npm, pip, go), kept in build/cache and laid out in build/deps. A step whose stamp equals its pin is done.
"""

import argparse
import fcntl
import fnmatch
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(ROOT, "build", "cache")
DEPS = os.path.join(ROOT, "build", "deps")
STAMPS = os.path.join(DEPS, ".stamps")
WHEELS = os.path.join(CACHE, "wheels")
VENV_PYTHON = os.path.join(DEPS, "venv", "bin", "python")
# The runtimes' wheels are made for CPython 3.11; only the library in them is used, so any Python may unpack them.
RUNTIME_WHEEL = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]


class SetupError(Exception):
    """One sentence for the user."""


def say(text):
    print("setup: " + text, flush=True)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def stamp_is(name, pin):
    """True when step `name` was finished for exactly this pin."""
    try:
        with open(os.path.join(STAMPS, name), encoding="utf-8") as file:
            return file.read() == pin
    except FileNotFoundError:
        return False


def stamp_write(name, pin):
    os.makedirs(STAMPS, exist_ok=True)
    with open(os.path.join(STAMPS, name), "w", encoding="utf-8") as file:
        file.write(pin)


def replace_folder(new, path):
    """Puts the finished folder `new` in place of `path`, which is there at all times but one instant."""
    old = path + ".old"
    shutil.rmtree(old, ignore_errors=True)
    if os.path.lexists(path):
        os.rename(path, old)
    os.rename(new, path)
    shutil.rmtree(old, ignore_errors=True)


def scratch_folder(path):
    new = path + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    return new


def run(command, log_name, sentence, **more):
    """Runs a client; on failure its words go to a log and `sentence` to the user. Returns its output."""
    os.makedirs(CACHE, exist_ok=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)
    if done.returncode == 0:
        return done.stdout.decode()
    log = os.path.join(CACHE, log_name)
    with open(log, "wb") as file:
        file.write(done.stdout + done.stderr)
    if b"THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr:
        raise SetupError("what the Python package registry gave has another SHA-256 than the pinned one (see " +
                         os.path.relpath(log, ROOT) + ")")
    raise SetupError(sentence + " (see " + os.path.relpath(log, ROOT) + ")")


def venv_make():
    """An empty virtual environment, whose pip does the downloading too."""
    if os.path.exists(VENV_PYTHON) and stamp_is("venv-python", sys.version):
        return
    say("making a Python environment in build/deps/venv")
    run([sys.executable, "-m", "venv", "--clear", os.path.join(DEPS, "venv")], "venv.log",
        "a Python environment could not be made; is python3-venv installed?")
    stamp_write("venv-python", sys.version)


def wheel(package, version, hashes, *platform_options, machine=""):
    """Path of a wheel (of `machine`, for code) with one of the pinned hashes, from the cache or the registry."""
    pattern = os.path.join(WHEELS, package.replace("-", "_") + "-" + version + "-*" + machine + ".whl")
    for path in sorted(glob.glob(pattern)):
        if sha256(path) in hashes:
            return path
    say("fetching " + package + " " + version)
    venv_make()
    os.makedirs(WHEELS, exist_ok=True)
    pins = os.path.join(CACHE, package + "-" + version + ".txt")
    with open(pins, "w", encoding="utf-8") as file:
        file.write(package + "==" + version + "".join(" --hash=sha256:" + h for h in hashes) + "\n")
    run([VENV_PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-d", WHEELS,
         "-r", pins, *platform_options], "pip.log",
        package + " " + version + " could not be fetched from the Python package registry")
    for path in sorted(glob.glob(pattern)):
        if sha256(path) in hashes:
            return path
    raise SetupError(package + " " + version + " came from the Python package registry without the pinned SHA-256")


def headers_elsewhere():
    if os.environ.get("ONNXRUNTIME_INCLUDE_DIR"):
        return True
    return subprocess.run(["pkg-config", "--exists", "libonnxruntime"], check=False).returncode == 0


def setup_headers(pin):
    target = os.path.join(DEPS, "ort-headers")
    mark = json.dumps(pin)
    if stamp_is("ort-headers", mark) and os.path.exists(os.path.join(target, "onnxruntime_c_api.h")):
        return
    if headers_elsewhere():
        return
    name = pin["package"] + "-" + pin["version"] + ".tgz"
    path = os.path.join(CACHE, "npm", name)
    if not os.path.exists(path) or sha256(path) != pin["sha256"]:
        say("fetching ONNX Runtime's headers (" + pin["package"] + " " + pin["version"] + ", 150 MB)")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        run(["npm", "pack", "--silent", pin["package"] + "@" + pin["version"]], "npm.log",
            "ONNX Runtime's headers (" + pin["package"] + ") could not be fetched from the npm registry; "
            "set ONNXRUNTIME_INCLUDE_DIR to use headers that are here", cwd=os.path.dirname(path))
    if not os.path.exists(path) or sha256(path) != pin["sha256"]:
        raise SetupError(name + " from the npm registry does not have the pinned SHA-256")
    say("unpacking ONNX Runtime's headers")
    new = scratch_folder(target)
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.startswith(pin["folder"]):
                with open(os.path.join(new, os.path.basename(member.name)), "wb") as file:
                    shutil.copyfileobj(archive.extractfile(member), file)
    replace_folder(new, target)
    stamp_write("ort-headers", mark)


def manylinux(*glibcs, machine=os.uname().machine):
    return [option for glibc in glibcs for option in ("--platform", "manylinux_" + glibc + "_" + machine)]


def setup_runtime(version, hashes, machine=None):
    """Below build/deps/ort; below build/deps/MACHINE/ort when it is for another machine than this."""
    folder = os.path.join(DEPS, machine or "", "ort", version)
    library = os.path.join(folder, "libonnxruntime.so." + version)
    name = "ort-" + (machine + "-" if machine else "") + version
    mark = " ".join(hashes) + " with providers_shared"
    if stamp_is(name, mark) and os.path.exists(library):
        return
    machine = machine or os.uname().machine
    path = wheel("onnxruntime", version, hashes, *RUNTIME_WHEEL, *manylinux("2_28", "2_27", machine=machine), machine=machine)
    new = scratch_folder(folder)
    with zipfile.ZipFile(path) as archive:
        # 1.23 loads the second one, from its own folder, before it registers any EP library
        for inside in ("onnxruntime/capi/libonnxruntime.so." + version, "onnxruntime/capi/libonnxruntime_providers_shared.so"):
            with archive.open(inside) as source, open(os.path.join(new, os.path.basename(inside)), "wb") as file:
                shutil.copyfileobj(source, file)
    replace_folder(new, folder)
    stamp_write(name, mark)
    say("ONNX Runtime " + version + " is in " + os.path.relpath(folder, ROOT))


def setup_ep(name, pin):
    """A real EP's plugin library and what it loads: build/deps/eps/NAME, in the wheel's own folders."""
    folder = os.path.join(DEPS, "eps", name)
    mark = json.dumps(pin)
    if stamp_is("ep-" + name, mark) and os.path.isdir(folder):
        return
    if os.uname().machine != pin["machine"]:
        say(pin["package"] + " is left out: there is one for " + pin["machine"] + " alone")
        return
    path = wheel(pin["package"], pin["version"], pin["sha256"], *RUNTIME_WHEEL, *manylinux(pin["glibc"]))
    new = scratch_folder(folder)
    with zipfile.ZipFile(path) as archive:
        for inside in archive.namelist():
            if any(fnmatch.fnmatchcase(inside, pattern) for pattern in pin["files"]):
                out = os.path.join(new, inside)
                os.makedirs(os.path.dirname(out), exist_ok=True)
                with archive.open(inside) as source, open(out, "wb") as file:
                    shutil.copyfileobj(source, file)
    replace_folder(new, folder)
    stamp_write("ep-" + name, mark)
    say(pin["package"] + " " + pin["version"] + " is in " + os.path.relpath(folder, ROOT))


def setup_models(pins):
    folder = os.path.join(DEPS, "models")
    os.makedirs(folder, exist_ok=True)
    for pin in pins:
        name = "model-" + pin["package"]
        mark = json.dumps(pin)
        if stamp_is(name, mark) and all(os.path.exists(os.path.join(folder, f)) for f in pin["files"]):
            continue
        path = wheel(pin["package"], pin["version"], pin["sha256"], "--python-version", "3.11", *manylinux("2_28"))
        with zipfile.ZipFile(path) as archive:
            for target, inside in pin["files"].items():
                new = os.path.join(folder, target + ".new")
                with archive.open(inside) as source, open(new, "wb") as file:
                    shutil.copyfileobj(source, file)
                os.rename(new, os.path.join(folder, target))
        stamp_write(name, mark)
        say("models of " + pin["package"] + ": " + ", ".join(pin["files"]))


def setup_venv():
    requirements = os.path.join(ROOT, "tools", "requirements.txt")
    mark = sys.version + sha256(requirements)
    if stamp_is("venv", mark) and os.path.exists(VENV_PYTHON):
        return
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise SetupError("python3 is " + sys.version.split()[0] + "; the packages in tools/requirements.txt are pinned for 3.11 to 3.13")
    venv_make()
    os.makedirs(WHEELS, exist_ok=True)
    pip = [VENV_PYTHON, "-m", "pip"]
    offline = [*pip, "install", "--quiet", "--no-deps", "--only-binary=:all:", "--no-index", "--find-links", WHEELS,
               "--require-hashes", "-r", requirements]
    if subprocess.run(offline, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        say("fetching Python packages (cryptography, numpy, onnx, onnxruntime and what they need)")
        run([*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-d", WHEELS, "-r", requirements],
            "pip.log", "the Python packages of tools/requirements.txt could not be fetched from the Python package registry")
        run(offline, "pip.log", "the Python packages of tools/requirements.txt could not be installed")
    stamp_write("venv", mark)
    say("Python packages are in build/deps/venv")


def setup_vectors(pins):
    mark = json.dumps(pins)
    target = os.path.join(DEPS, "vectors")
    if stamp_is("vectors", mark) and all(os.path.isdir(os.path.join(target, p["folder"])) for p in pins):
        return
    say("fetching test vectors (CCTV age, Wycheproof)")
    new = scratch_folder(target)
    environment = dict(os.environ, GOMODCACHE=os.path.join(CACHE, "go"), GOFLAGS="-modcacherw")
    empty = scratch_folder(os.path.join(CACHE, "go-work"))
    for pin in pins:
        answer = json.loads(run(["go", "mod", "download", "-json", pin["module"] + "@" + pin["version"]], "go.log",
                                pin["module"] + " could not be fetched from the Go module proxy", env=environment, cwd=empty))
        if answer.get("Sum") != pin["sum"]:
            raise SetupError(pin["module"] + " from the Go module proxy does not have the pinned checksum")
        for folder, _, names in os.walk(answer["Dir"]):
            for name in names:
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, answer["Dir"])
                if any(fnmatch.fnmatchcase(inside, pattern) for pattern in pin["files"]):
                    out = os.path.join(new, pin["folder"], inside)
                    os.makedirs(os.path.dirname(out), exist_ok=True)
                    shutil.copyfile(path, out)
        shutil.rmtree(answer["Dir"])  # the zip stays in the cache
    replace_folder(new, target)
    stamp_write("vectors", mark)


def setup_test_models():
    script = os.path.join(ROOT, "tests", "models", "make_models.py")
    if not os.path.exists(script):
        return
    target = os.path.join(DEPS, "testmodels")
    mark = "".join(sha256(path) for path in sorted(glob.glob(os.path.join(os.path.dirname(script), "*.py"))))
    if stamp_is("testmodels", mark) and os.path.isdir(target):
        return
    say("generating the test models")
    new = scratch_folder(target)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", ORT_DISABLE_TELEMETRY="1")
    run([VENV_PYTHON, script, new], "testmodels.log", "the test models could not be generated", env=environment)
    replace_folder(new, target)
    stamp_write("testmodels", mark)


def setup_fixed_models(pins):
    """The PP-OCR models with fixed dimensions, which EPs that need them take whole."""
    script = os.path.join(ROOT, "tests", "models", "fix_shapes.py")
    if not os.path.exists(script):
        return
    folder = os.path.join(DEPS, "models")
    mark = sha256(script) + json.dumps(pins)
    if stamp_is("fixed-models", mark) and glob.glob(os.path.join(folder, "*_fixed.onnx")):
        return
    say("fixing dimensions of models")
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", ORT_DISABLE_TELEMETRY="1")
    run([VENV_PYTHON, script, folder], "fix_shapes.log", "the models' dimensions could not be fixed", env=environment)
    stamp_write("fixed-models", mark)


def arguments_parse(pins):
    parser = argparse.ArgumentParser(prog="tools/setup", description="fetches what build, tests and demo need")
    parser.add_argument("--runtime", action="append", default=[], metavar="VERSION", choices=[*pins["runtimes"], "all"],
                        help="fetch this ONNX Runtime as well: one of tools/pins.json, or all")
    parser.add_argument("--ep", action="append", default=[], metavar="NAME", choices=list(pins["eps"]),
                        help="fetch this execution provider as well: " + ", ".join(pins["eps"]))
    parser.add_argument("--eps", action="store_true", help="fetch all of these execution providers")
    arguments = parser.parse_args()
    runtimes = list(pins["runtimes"]) if "all" in arguments.runtime else arguments.runtime
    return runtimes, list(pins["eps"]) if arguments.eps else arguments.ep


def main():
    with open(os.path.join(ROOT, "tools", "pins.json"), encoding="utf-8") as file:
        pins = json.load(file)
    runtimes, eps = arguments_parse(pins)
    os.makedirs(DEPS, exist_ok=True)
    lock = open(os.path.join(DEPS, ".lock"), "wb")  # until this process ends: another target started at the same time waits
    fcntl.flock(lock, fcntl.LOCK_EX)
    setup_headers(pins["headers"])
    setup_venv()
    for version in dict.fromkeys([*pins["default_runtimes"], *runtimes]):
        setup_runtime(version, pins["runtimes"][version])
    for name in dict.fromkeys(eps):
        setup_ep(name, pins["eps"][name])
    setup_models(pins["models"])
    setup_vectors(pins["vectors"])
    setup_test_models()
    setup_fixed_models(pins["models"])


if __name__ == "__main__":
    try:
        main()
    except SetupError as problem:
        print("tools/setup: " + str(problem), file=sys.stderr)
        sys.exit(1)
