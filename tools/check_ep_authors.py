"""The code of docs/ep-authors.md compiles with exactly what it says to copy. Usage: check_ep_authors.py CC CXX ORT-HEADERS

All blocks marked `c` are one C11 file, all marked `cpp` one C++17 file; each is linked with ortcrypt_ep_context.c into a library that
exports of ortcrypt the entry point alone.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Werror", "-fPIC"]


def blocks(text, language):
    return "\n".join(re.findall(r"^```" + language + r"\n(.*?)^```$", text, re.S | re.M))


def run(what, command):
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit("docs/ep-authors.md: " + what + " does not compile")


def main():
    cc, cxx, ort_headers = sys.argv[1:]
    with open(os.path.join(ROOT, "docs", "ep-authors.md"), encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        for header in ("ep_context.h", "ep_context.hpp"):
            shutil.copy(os.path.join(ROOT, "include", "ortcrypt", header), folder)
        helper = os.path.join(folder, "ortcrypt_ep_context.c")
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "one_ep_context.py"), helper], check=True)
        run("ortcrypt_ep_context.c", [cc, "-std=c11", "-Wstrict-prototypes", "-Wmissing-prototypes", *FLAGS, "-isystem", ort_headers,
                                      "-c", helper, "-o", helper + ".o"])
        quiet = helper + ".quiet.so"
        run("ortcrypt_ep_context.c without its entry point", [cc, "-std=c11", "-DORTCRYPT_EP_CONTEXT_NO_ATTACH", *FLAGS, "-isystem",
                                                              ort_headers, "-shared", helper, "-o", quiet])
        if "ortcrypt_" in subprocess.run(["nm", "-D", "--defined-only", quiet], stdout=subprocess.PIPE, check=True, text=True).stdout:
            sys.exit("docs/ep-authors.md: ORTCRYPT_EP_CONTEXT_NO_ATTACH leaves something exported")
        for compiler, language, standard, ending in ((cc, "c", "c11", "c"), (cxx, "cpp", "c++17", "cpp")):
            source = os.path.join(folder, "ep." + ending)
            with open(source, "w", encoding="utf-8") as file:
                file.write(blocks(text, language))
            library = source + ".so"
            run("its " + language, [compiler, "-std=" + standard, *FLAGS, "-isystem", ort_headers, "-shared", source, helper + ".o",
                                    "-o", library])
            symbols = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True, text=True).stdout
            if re.findall(r"\bortcrypt_\w+", symbols) != ["ortcrypt_ep_attach"] or not re.search(r" T ", symbols):
                sys.exit(f"docs/ep-authors.md: its {language} exports\n{symbols}")
    print("the code of docs/ep-authors.md compiles, in C and in C++")


if __name__ == "__main__":
    main()
