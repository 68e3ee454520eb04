"""The C program of README.md compiles and runs; the README stays short. Usage: check_readme.py CC LIBORTCRYPT.A ORT-HEADERS [CC-FLAG...]

Uses the environment of the tests: ORTCRYPT_BUILD (the command line) and ORTCRYPT_DEPS (model, runtime).
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    cc, library, ort_headers, *flags = sys.argv[1:]
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    if text.count("\n") >= 150:
        sys.exit("README.md has 150 lines or more")
    program = re.search(r"^```c\n(.*?)^```$", text, re.S | re.M)[1]
    deps = os.environ["ORTCRYPT_DEPS"]
    runtime = max(glob.glob(os.path.join(deps, "ort", "*", "libonnxruntime.so.*")),
                  key=lambda path: [int(n) for n in re.findall(r"\d+", os.path.basename(path))])
    command_line = os.path.join(os.environ["ORTCRYPT_BUILD"], "ortcrypt")
    with tempfile.TemporaryDirectory() as folder:
        hello, key, bundle = (os.path.join(folder, name) for name in ("hello", "key.txt", "model.ortc"))
        with open(hello + ".c", "w", encoding="utf-8") as file:
            file.write(program)
        subprocess.run([cc, *flags, "-Wall", "-Wextra", "-Werror", hello + ".c", "-o", hello, "-I", os.path.join(ROOT, "include"), "-I",
                        ort_headers, library, "-lcrypto", "-ljansson", "-lpthread", "-ldl"], check=True)
        subprocess.run([command_line, "keygen", "-o", key], stdout=subprocess.DEVNULL, check=True)
        with open(key, encoding="utf-8") as file:
            recipient = re.search(r"age1\w+", file.read())[0]
        subprocess.run([command_line, "encrypt", os.path.join(deps, "models", "ppocr_rec.onnx"), "-o", bundle, "-r", recipient],
                       stdout=subprocess.DEVNULL, check=True)
        told = subprocess.run([hello, bundle, key, runtime], stdout=subprocess.PIPE, check=True, text=True).stdout
    if told != "it runs\n":
        sys.exit(f"the program of README.md says {told!r}")
    print("the program of README.md compiles and runs")


if __name__ == "__main__":
    main()
