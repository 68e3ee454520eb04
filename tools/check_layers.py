"""Checks what CONTRIBUTING.md says about layers and sizes. Usage: tools/check_layers.py

- A folder includes only what is below it (LAYERS), and only src/crypto includes OpenSSL.
- GetApi is called by src/runtime and src/ep_context alone.
- The library's folders call nothing that makes, renames or removes files but through src/os (a thread in the sandbox cannot).
- Files have at most 400 lines, functions at most 60.
Prints one line per breach, as file:line: sentence; exit 1 when there is any.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_FILE, MAX_FUNCTION = 400, 60

# Folder: folders of src/ it may include (its own always), public headers it may include, external headers it may include.
BELOW_STORE = ["base", "os", "crypto", "format"]
LAYERS = {
    "src/base": ([], ["error"], []),
    "src/os": (["base"], ["error", "sandbox"], []),
    "src/crypto": (["base", "os"], ["error"], ["openssl"]),
    "src/format": (["base"], ["error"], ["jansson"]),
    "src/store": (BELOW_STORE, ["error"], []),
    "src/bundle": ([*BELOW_STORE, "store"], ["error", "keyring", "bundle"], ["jansson"]),
    "src/ep_context": ([], ["ep_context"], ["onnxruntime"]),
    "src/interpose": (["ep_context"], ["ep_context"], ["onnxruntime"]),
    "src/runtime": (["base", "os", "ep_context", "interpose"], ["error", "ep_context", "bridge", "runtime"], ["onnxruntime", "jansson"]),
    "src/flow": ([*BELOW_STORE, "store", "bundle", "ep_context", "runtime"], "all", ["onnxruntime", "jansson"]),
    "src/audit": ([*BELOW_STORE, "store", "bundle", "ep_context", "runtime", "flow"], "all", ["onnxruntime", "jansson"]),
    "src/conform": ([*BELOW_STORE, "store", "bundle", "ep_context", "interpose", "runtime", "flow"], "all",
                    ["onnxruntime", "jansson"]),
    "bridge": (["ep_context", "interpose"], ["ep_context", "bridge"], ["onnxruntime"]),
    "reference-ep": (["ep_context"], ["ep_context"], ["onnxruntime"]),
    "cli": ([], "all", ["onnxruntime", "jansson"]),
    "include": ([], "all", ["onnxruntime"]),
}
ALSO = {("cli", "conform/check.h")}  # one header of a folder that is not below: what the verb check-ep calls
EXTERNAL = re.compile(r"(openssl|jansson|onnxruntime)")
GET_API_ALLOWED = ("src/runtime", "src/ep_context", "src/interpose", "bridge", "reference-ep", "tests", "bench")
# What a thread in the sandbox cannot do; src/ep_context is the EP's side, which is not to write past it.
WRITES = re.compile(r"(?<![\w.>])((mkdir|rename|link|symlink|unlink|mknod|mkfifo)(at2?)?|rmdir|creat|truncate|mkstemp|mkdtemp|mkostemp|futimens|"
                    r"utimensat|f?chmod|f?chown|fopen)\s*\(|\bopen(at)?\(.*\bO_(CREAT|TMPFILE|WRONLY|RDWR)\b")
WRITES_CHECKED = ("src/store", "src/bundle", "src/runtime", "src/flow", "src/crypto", "src/audit")
SIZED = ("include", "src", "bridge", "reference-ep", "cli", "examples", "packaging", "tests", "bench", "tools", "python")
ENDINGS = (".c", ".h", ".cpp", ".hpp", ".py", ".sh", ".bats")


def files_below(*folders):
    for folder in folders:
        for where, dirs, names in os.walk(os.path.join(ROOT, folder)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    yield os.path.relpath(os.path.join(where, name), ROOT)


def layer_of(path):
    return next((layer for layer in LAYERS if path.startswith(layer + "/")), None)


def include_breach(layer, target):
    """A sentence when a file of `layer` must not include `target`, else None."""
    inner, public, external = LAYERS[layer]
    if (layer, target) in ALSO:
        return None
    if target.startswith("ortcrypt/"):
        noun = re.sub(r"\.h(pp)?$", "", target[len("ortcrypt/"):])
        return None if public == "all" or noun in public else layer + " must not include the public header " + target
    found = EXTERNAL.match(target)
    if found:
        return None if found[1] in external else layer + " must not include <" + target + ">"
    folder = target.split("/")[0] if "/" in target else None
    if folder is None:
        return None
    if os.path.isdir(os.path.join(ROOT, "src", folder)):
        return None if folder in inner or layer == "src/" + folder else layer + " must not include " + target
    return None


def check_includes(breaches):
    for path in files_below(*LAYERS):
        layer = layer_of(path)
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                found = re.match(r'\s*#\s*include\s*([<"])([^">]+)', line)
                sentence = include_breach(layer, found[2]) if found else None
                if sentence:
                    breaches.append(f"{path}:{number}: {sentence}")


def check_get_api(breaches):
    for path in files_below(*LAYERS):
        if path.startswith(GET_API_ALLOWED) or path.startswith("include"):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if re.search(r"(->|\.)\s*GetApi\b|\bOrtGetApiBase\b", line):
                    breaches.append(f"{path}:{number}: only src/runtime and src/ep_context ask a runtime for its API")


def check_writes(breaches):
    for path in files_below(*WRITES_CHECKED):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if WRITES.search(line) and not re.match(r"\s*(/?\*|//)", line) and "oc_disk_" not in line:
                    breaches.append(f"{path}:{number}: files are made, renamed and removed through os/outside.h")


def functions_of(lines):
    """(line number of '{', lines between the braces) for each C function laid out as here: braces in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            if line.rstrip() == "}":
                yield start, number - start - 1
            start = None


def check_sizes(breaches):
    for path in files_below(*SIZED):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines = file.read().splitlines()
        if len(lines) > MAX_FILE:
            breaches.append(f"{path}:{MAX_FILE}: {len(lines)} lines; a file has at most {MAX_FILE}")
        if path.endswith((".c", ".h")):
            for start, length in functions_of(lines):
                if length > MAX_FUNCTION:
                    breaches.append(f"{path}:{start}: {length} lines; a function has at most {MAX_FUNCTION}")


def main():
    breaches = []
    check_includes(breaches)
    check_get_api(breaches)
    check_writes(breaches)
    check_sizes(breaches)
    for breach in breaches:
        print(breach)
    if breaches:
        sys.exit(f"{len(breaches)} breaches of CONTRIBUTING.md")
    print("layers and sizes are as CONTRIBUTING.md says")


if __name__ == "__main__":
    main()
