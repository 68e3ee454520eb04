"""ortcrypt/ep_context.h and src/ep_context compile with ONNX Runtime's headers of API 23. Usage: old_headers.py CC CXX ORT-HEADERS

No package that can be fetched has those headers. They are made from the present ones: the tables only grow at their end, and their
entries say since when they are there, so each is cut before the first that is younger than 1.23. That the result is API 23 is
checked by the number of entries that ONNX Runtime 1.23's own tables have.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ["-Wall", "-Wextra", "-Wundef", "-Wpedantic", "-Werror", "-fsyntax-only"]
API = 23
ENTRIES = {"OrtApi": 390, "OrtEpApi": 16}  # measured on the library of 1.23.2
TABLE = re.compile(r"^struct \w+ \{\n(.*?)^\};", re.S | re.M)
COMMENT = re.compile(r"^[ \t]*/\*\*(.*?)\*/", re.S | re.M)


def cut(match):
    """A struct up to its first entry that is younger than API."""
    for comment in COMMENT.finditer(match[1]):
        since = re.search(r"\\since (?:Version )?1\.(\d+)", comment[1])
        if since and int(since[1]) > API:
            return match[0][:match.start(1) - match.start() + comment.start()] + "};"
    return match[0]


def make_headers(source, target):
    for path in glob.glob(os.path.join(source, "onnxruntime_*c_api.h")) + [os.path.join(source, "onnxruntime_error_code.h")]:
        if not os.path.exists(path) or "experimental" in path:
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"#define ORT_API_VERSION \d+", f"#define ORT_API_VERSION {API}", text)
        with open(os.path.join(target, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(TABLE.sub(cut, text))


def compiles(what, command, source):
    if subprocess.run(command, input=source.encode(), check=False).returncode != 0:
        sys.exit(what + " does not compile with the headers of API " + str(API))


def main():
    cc, cxx, ort_headers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as old:
        make_headers(ort_headers, old)
        paths = ["-I", os.path.join(ROOT, "include"), "-I", os.path.join(ROOT, "src"), "-isystem", old]
        counts = "".join(f'_Static_assert(sizeof(struct {name}) == {count} * sizeof(void *), "{name}");\n' for name, count in ENTRIES.items())
        newer = "#if ORT_API_VERSION != 23\n#error\n#endif\n"
        compiles("a table of the length it had", [cc, "-x", "c", "-std=c11", *FLAGS, *paths, "-"],
                 "#include <onnxruntime_c_api.h>\n" + newer + counts)
        for compiler, language, standard in ((cc, "c", "-std=c11"), (cxx, "c++", "-std=c++17")):
            compiles("ortcrypt/ep_context.h", [compiler, "-x", language, standard, *FLAGS, *paths, "-"], "#include <ortcrypt/ep_context.h>\n")
        sources = sorted(glob.glob(os.path.join(ROOT, "src", "ep_context", "*.c")))
        for source in sources:
            compiles(os.path.relpath(source, ROOT),
                     [cc, "-std=c11", "-D_GNU_SOURCE", "-DORTCRYPT_EP_CONTEXT_LOCAL", *FLAGS, *paths, source], "")
    print(f"ep_context.h and {len(sources)} sources compile with the headers of API {API}")


if __name__ == "__main__":
    main()
