"""Where some bytes are kept in the file system. Usage: find_marker.py MARKER NEWER_THAN FOLDER...

Looks at the content of every regular file below the folders that changed after the file NEWER_THAN did, and at every name, link
target and extended attribute there. Prints one line per place. Exit code 0: nowhere; 1: somewhere.
"""
import os
import stat
import sys

marker = sys.argv[1].encode()
since = os.stat(sys.argv[2]).st_mtime_ns
found = 0


def report(where, path):
    global found
    found += 1
    print(f"{where}: {os.fsdecode(path)}")


def content_has(path):
    tail = b""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            if marker in tail + block:
                return True
            tail = block[-len(marker):]
    return False


def look(path):
    info = os.lstat(path)
    if marker in os.path.basename(path):
        report("name", path)
    if stat.S_ISLNK(info.st_mode):
        if marker in os.readlink(path):
            report("link", path)
        return
    for name in os.listxattr(path, follow_symlinks=False):
        if marker in os.getxattr(path, name, follow_symlinks=False):
            report("attribute", path)
    if stat.S_ISREG(info.st_mode) and max(info.st_mtime_ns, info.st_ctime_ns) >= since and content_has(path):
        report("content", path)


for root in sys.argv[3:]:
    for folder, folders, names in os.walk(os.fsencode(root)):
        for name in folders + names:
            try:
                look(os.path.join(folder, name))
            except OSError:
                pass  # others' files come and go, and may be theirs alone
sys.exit(1 if found else 0)
