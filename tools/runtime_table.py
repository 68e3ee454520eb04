"""Keeps the table in docs/runtimes.md equal to the library's. Usage: runtime_table.py --check|--write PROGRAM (build/*/runtime_table)"""

import os
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "runtimes.md")
BEGIN, END = "<!-- table: made by tools/runtime_table.py -->\n", "<!-- end of table -->\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--write"):
        sys.exit(__doc__)
    table = subprocess.run([sys.argv[2]], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit("docs/runtimes.md has no place for the table")
    made = head + BEGIN + table + END + tail
    if sys.argv[1] == "--write":
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(made)
    elif made != page:
        sys.exit("the table in docs/runtimes.md is not the library's: python3 tools/runtime_table.py --write " + sys.argv[2])


if __name__ == "__main__":
    main()
