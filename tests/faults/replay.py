"""What a disk may hold after a power cut: the log of `record`, replayed up to every event under several models of a disk.

A folder's entries last when the folder was fsynced after they changed; a file's bytes last when the file was fsynced after
they were written. What a disk may do beyond that differs, so each prefix of the log gives several trees:

- everything      all of it reached the disk
- fsynced only    nothing but what was fsynced: other files are as at their last fsync (new ones empty), other entries missing
- names first     all entries, but bytes only as fsynced
- torn            all entries, and of the bytes written after the last fsync the first half
- early F, late F for each folder F: its entries alone reached the disk, or all others but its own; bytes only as fsynced
"""
import hashlib
import os
from urllib.parse import unquote


class File:
    def __init__(self, data=b"", lasting=b""):
        self.data, self.lasting = bytearray(data), bytes(lasting)

    def written(self):
        return self.lasting if self.data == self.lasting else bytes(self.data)


class Folder:
    def __init__(self):
        self.entries, self.lasting = {}, {}


def node_id(info):
    return f"{info.st_dev:x}:{info.st_ino:x}"


class Disk:
    """The folder `root` as it was before the command ran: all of that is on the disk."""

    def __init__(self, root):
        self.nodes = {}
        self.reported = False
        self.root = self._load(root)

    def _load(self, path):
        folder = Folder()
        self.nodes[node_id(os.stat(path))] = folder
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                node = self._load(entry.path)
            else:
                with open(entry.path, "rb") as file:
                    data = file.read()
                node = self.nodes.setdefault(node_id(entry.stat(follow_symlinks=False)), File(data, data))
            folder.entries[entry.name] = node
        folder.lasting = dict(folder.entries)
        return folder

    def apply(self, line):
        """One event. Returns whether it concerned this folder."""
        event, *words = line.split()
        if event == "report":
            self.reported = True
            return True
        if event == "unknown":
            if words[1] in self.nodes:
                raise ValueError(f"the command used {words[0]}, which is not followed")
            return False
        node = self.nodes.get(words[0])
        if node is None:
            if event == "rename" and words[2] in self.nodes:
                raise ValueError("a file came in from elsewhere")
            return False
        getattr(self, "_" + event)(node, *words[1:])
        return True

    def _create(self, folder, name, new):
        folder.entries[unquote(name)] = self.nodes[new] = File()

    def _mkdir(self, folder, name, new):
        folder.entries[unquote(name)] = self.nodes[new] = Folder()

    def _link(self, folder, name, file):
        folder.entries[unquote(name)] = self.nodes[file]

    def _unlink(self, folder, name):
        del folder.entries[unquote(name)]

    def _rename(self, folder, name, to, to_name):
        self.nodes[to].entries[unquote(to_name)] = folder.entries.pop(unquote(name))

    def _write(self, file, offset, data=""):
        offset, data = int(offset), bytes.fromhex(data)
        file.data.extend(bytes(max(0, offset - len(file.data))))
        file.data[offset:offset + len(data)] = data

    def _truncate(self, file):
        file.data.clear()

    def _fsync(self, node):
        if isinstance(node, Folder):
            node.lasting = dict(node.entries)
        else:
            node.lasting = bytes(node.data)

    def models(self):
        folders = list(dict.fromkeys(n for n in self.nodes.values() if isinstance(n, Folder) and n.entries != n.lasting))
        yield "everything", lambda f: f.entries, lambda f: f.written()
        yield "fsynced only", lambda f: f.lasting, lambda f: f.lasting
        yield "names first", lambda f: f.entries, lambda f: f.lasting
        yield "torn", lambda f: f.entries, torn
        for i, folder in enumerate(folders):
            yield f"early {i}", lambda f, one=folder: f.entries if f is one else f.lasting, lambda f: f.lasting
            yield f"late {i}", lambda f, one=folder: f.lasting if f is one else f.entries, lambda f: f.lasting

    def tree(self, entries, data):
        """Path -> bytes, or None for a folder."""
        out = {}

        def walk(folder, at):
            for name, node in sorted(entries(folder).items()):
                if isinstance(node, Folder):
                    out[at + name] = None
                    walk(node, at + name + "/")
                else:
                    out[at + name] = data(node)

        walk(self.root, "")
        return out


def torn(file):
    if file.data == file.lasting:
        return file.lasting
    same = os.path.commonprefix([bytes(file.data), file.lasting])
    return bytes(file.data[:(len(same) + len(file.data)) // 2])


def digest(tree):
    hasher = hashlib.sha256()
    for path, data in tree.items():
        hasher.update(f"{path}\0{-1 if data is None else len(data)}\0".encode())
        hasher.update(data or b"")
    return hasher.digest()


def write_tree(tree, root):
    for path, data in tree.items():
        where = os.path.join(root, path)
        if data is None:
            os.mkdir(where)
        else:
            # 0600 as everything of ours is made: a file has its mode from the moment that it has a name
            with open(os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)


def trees(disk, log):
    """Every different tree of every prefix: (number of events, event, model, whether success was reported before, tree)."""
    seen = set()
    cuts = 0
    with open(log, encoding="ascii") as file:
        lines = ["start", *file.read().splitlines()]
    for n, line in enumerate(lines):
        if n and not disk.apply(line):
            continue
        for model, entries, data in disk.models():
            cuts += 1
            tree = disk.tree(entries, data)
            key = (digest(tree), disk.reported)
            if key not in seen:
                seen.add(key)
                yield cuts, " ".join(word[:60] for word in line.split()[:3]), model, disk.reported, tree
    yield cuts, "", "end", disk.reported, None
