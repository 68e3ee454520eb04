"""Checks find_plaintext against a slow search on planted windows. Usage: check_find_plaintext.py FIND_PLAINTEXT"""

import os
import random
import subprocess
import sys
import tempfile

WINDOW = 64


def slow(plain, other):
    windows = {plain[i : i + WINDOW] for i in range(len(plain) - WINDOW + 1)}
    return any(other[i : i + WINDOW] in windows and len(set(other[i : i + WINDOW])) >= 8 for i in range(len(other) - WINDOW + 1))


def main():
    tool = sys.argv[1]
    dice = random.Random(7)
    verdicts = {0: 0, 1: 0}
    with tempfile.TemporaryDirectory() as folder:
        plain_path, other_path = os.path.join(folder, "plain"), os.path.join(folder, "other")
        for turn in range(400):
            # Random bytes, constant runs and few-valued stretches, as in a model.
            plain = b"".join(dice.choice([dice.randbytes(dice.randrange(150)), bytes([dice.randrange(3)]) * dice.randrange(200),
                                          bytes(dice.choices(range(dice.choice([2, 7, 8, 9])), k=dice.randrange(150))),
                                          dice.randbytes(dice.choice([4, 16, 32, 64])) * dice.randrange(5)]) for _ in range(8))
            start = dice.randrange(max(1, len(plain) - 70))
            length = dice.choice([0, 32, 63, 64, 64, 65, 100])
            other = dice.randbytes(dice.randrange(100)) + plain[start : start + length] + dice.randbytes(dice.randrange(100))
            for path, data in ((plain_path, plain), (other_path, other)):
                with open(path, "wb") as file:
                    file.write(data)
            expected = 1 if slow(plain, other) else 0
            got = subprocess.run([tool, plain_path, "--", other_path], stdout=subprocess.DEVNULL, check=False).returncode
            if got != expected:
                sys.exit(f"turn {turn}: find_plaintext says {got}, a slow search {expected}")
            verdicts[got] += 1
        if min(verdicts.values()) < 50:
            sys.exit(f"the cases are lopsided: {verdicts}")
        if subprocess.run([tool, plain_path, "--", os.path.join(folder, "absent")], stderr=subprocess.DEVNULL, check=False).returncode != 2:
            sys.exit("a file that is absent was not reported")
    print(f"find_plaintext agrees with a slow search: {verdicts[1]} found, {verdicts[0]} not")


if __name__ == "__main__":
    main()
