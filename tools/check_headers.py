"""Each public header compiles alone, as C11 and as C++17. Usage: check_headers.py CC CXX ORT-HEADERS"""

import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-Wall", "-Wextra", "-Wundef", "-Wpedantic", "-Werror", "-fsyntax-only"]


def main():
    cc, cxx, ort_headers = sys.argv[1:]
    headers = sorted(glob.glob(os.path.join(ROOT, "include", "ortcrypt", "*.h*")))
    for header in headers:
        source = '#include "ortcrypt/' + os.path.basename(header) + '"\n'
        ways = [(cxx, "c++", "-std=c++17")] if header.endswith(".hpp") else [(cc, "c", "-std=c11"), (cxx, "c++", "-std=c++17")]
        for compiler, language, standard in ways:
            command = [compiler, "-x", language, standard, *FLAGS, "-I", os.path.join(ROOT, "include"), "-isystem", ort_headers, "-"]
            if subprocess.run(command, input=source.encode(), check=False).returncode != 0:
                sys.exit(f"ortcrypt/{os.path.basename(header)} does not compile alone with {standard}")
    print(f"{len(headers)} public headers compile alone")


if __name__ == "__main__":
    main()
