"""The list of public functions, docs/api.md, made from the public headers and compared with the library's symbols.

Usage: tools/api_list.py --write | tools/api_list.py --check LIBORTCRYPT.SO
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(ROOT, "docs", "api.md")
MAX_FUNCTIONS = 60  # the public API stays below
# Headers in the order in which a reader meets them.
ORDER = ["error", "keyring", "bundle", "runtime", "compile", "session", "sandbox", "ep_context"]

INTRO = """# The C API, function by function

Made from `include/ortcrypt/*.h` by `make docs`; a test compares it with the headers and with the symbols of the library. The headers
say everything else: arguments, units, owners, outputs on failure, threads.
"""


def first_sentence(comment):
    text = re.sub(r"\s+", " ", re.sub(r"^[ \t]*\*[ \t]?", "", comment, flags=re.M)).strip()
    return re.split(r"(?<=\.)\s", text)[0].rstrip(".:") + "."


def read_header(path):
    """([what the header is for], [(function, sentence)])"""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    purpose = re.match(r"/\*\s*\*\s*ortcrypt/\S+: (.*?)\n", text)[1]
    functions, sentence = [], ""
    pattern = r"/\*(.*?)\*/|^ORTCRYPT_(?:EP_CONTEXT_)?API\b[^;]*?\b(ortcrypt_\w+)\s*\([^;]*;|^[ \t]*$"
    for found in re.finditer(pattern, text, re.S | re.M):
        if found[1] is not None:
            sentence = first_sentence(found[1])
        elif found[2] is not None:
            functions.append((found[2], sentence))
        else:
            sentence = ""  # a comment speaks of what follows it without an empty line
    return purpose, functions


def read_entry_points():
    """[(function, header, sentence)]: what plugin libraries export for this library to call; none of it is called by applications."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "ortcrypt", "*.h"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for comment, name in re.findall(r"/\*((?:(?!\*/).)*?)\*/\s*^ORTCRYPT_EP_ENTRY_POINT\b[^;]*?\b(ortcrypt_\w+)\s*\([^;]*;", text, re.S | re.M):
            found.append((name, os.path.basename(path), first_sentence(comment)))
    return found


def read_headers():
    paths = glob.glob(os.path.join(ROOT, "include", "ortcrypt", "*.h"))
    names = {os.path.splitext(os.path.basename(path))[0]: path for path in paths}
    order = [n for n in ORDER if n in names] + sorted(set(names) - set(ORDER))
    return [(name, *read_header(names[name])) for name in order]


def render(headers):
    out = [INTRO]
    for name, purpose, functions in headers:
        out.append(f"\n## ortcrypt/{name}.h\n\n{purpose[0].upper() + purpose[1:]}\n\n| function | what it does |\n|---|---|\n")
        out.extend(f"| `{function}` | {sentence} |\n" for function, sentence in functions)
    out.append("\n## Entry points of plugin libraries\n\nExported by EP libraries and by the bridge, as `CreateEpFactories` is, and called by "
               "libortcrypt; applications call none of them.\n\n| function | declared in | what it is |\n|---|---|---|\n")
    out.extend(f"| `{name}` | `{header}` | {sentence} |\n" for name, header, sentence in read_entry_points())
    return "".join(out)


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    names = [line.split()[-1] for line in lines if line.split()[-2] != "A"]  # A: the version nodes themselves
    return {name.split("@")[0] for name in names}


def check(headers, library):
    declared = [function for _, _, functions in headers for function, _ in functions]
    problems = [f"{name} is declared twice" for name in sorted({n for n in declared if declared.count(n) > 1})]
    problems += [f"{name} has no comment of its own" for _, _, functions in headers for name, text in functions if not text]
    symbols = exported(library) - {name for name, _, _ in read_entry_points()}  # in it for EPs that link it
    problems += [f"{name} is exported and in no public header" for name in sorted(symbols - set(declared))]
    problems += [f"{name} is in a public header and not exported" for name in sorted(set(declared) - symbols)]
    if len(declared) >= MAX_FUNCTIONS:
        problems.append(f"the public API has {len(declared)} functions; it stays below {MAX_FUNCTIONS}")
    with open(TARGET, encoding="utf-8") as file:
        if file.read() != render(headers):
            problems.append("docs/api.md is not what the headers say; run: make docs")
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(1)
    print(f"{len(declared)} public functions, in headers, library and docs/api.md alike")


def main():
    headers = read_headers()
    if sys.argv[1:] == ["--write"]:
        os.makedirs(os.path.dirname(TARGET), exist_ok=True)
        with open(TARGET, "w", encoding="utf-8") as file:
            file.write(render(headers))
    elif len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(headers, sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
