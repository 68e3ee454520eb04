"""Where some bytes are kept in the file system. Usage: find_marker.py MARKER NEWER_THAN FOLDER...

Looks at everything below the folders whose record changed after the file NEWER_THAN did (what is made, written, renamed or given an
attribute changes it): names, link targets, extended attributes and the content of regular files up to 1 MiB, since whoever writes the
marker writes little more. Prints one line per place. Exit code 0: nowhere; 1: somewhere.
"""
import os
import stat
import sys

marker = sys.argv[1].encode()
since = os.stat(sys.argv[2]).st_mtime_ns
CONTENT_MAX = 1 << 20
found = 0


def report(where, path):
    global found
    found += 1
    print(f"{where}: {os.fsdecode(path)}")


def content_has(path):
    with open(path, "rb") as file:
        return marker in file.read(CONTENT_MAX)


def look(path, info):
    if marker in os.path.basename(path):
        report("name", path)
    if stat.S_ISLNK(info.st_mode):
        if marker in os.readlink(path):
            report("link", path)
        return
    for name in os.listxattr(path, follow_symlinks=False):
        if marker in os.getxattr(path, name, follow_symlinks=False):
            report("attribute", path)
    if stat.S_ISREG(info.st_mode) and info.st_size <= CONTENT_MAX and content_has(path):
        report("content", path)


def walk(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
                if info.st_ctime_ns >= since:
                    look(entry.path, info)
                if stat.S_ISDIR(info.st_mode):
                    walk(entry.path)
            except OSError:
                pass  # others' files come and go, and may be theirs alone


for root in sys.argv[3:]:
    walk(os.fsencode(root))
sys.exit(1 if found else 0)
