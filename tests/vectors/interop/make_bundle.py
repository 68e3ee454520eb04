#!/usr/bin/env python3
"""Makes a bundle with `age` and PyPI `cryptography` alone. Usage: make_bundle.py OUT RECIPIENT MODEL [EXTERNAL...]

EXTERNAL: the model's external data files, in its folder or below. Every one that the main graph names must be given.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys

import bundle_format as fmt

EXTERNAL = 1  # TensorProto.DataLocation


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protobuf message: bytes for length-delimited fields, integers for varints."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = {1: 8, 5: 4}[tag & 7]
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def external_tensor(proto):
    """One TensorProto: its row of the tensor table without the asset, and its location; None when it is not external."""
    tensor = {"name": "", "dtype": 0, "shape": []}
    entries, location = {}, 0
    for number, value in fields(proto):
        if number == 1 and isinstance(value, int):
            tensor["shape"].append(value)
        elif number == 1:
            at = 0
            while at < len(value):
                dimension, at = varint(value, at)
                tensor["shape"].append(dimension)
        elif number == 2:
            tensor["dtype"] = fmt.DTYPES[value]
        elif number == 8:
            tensor["name"] = bytes(value).decode()
        elif number == 13:
            pair = dict(fields(value))
            entries[bytes(pair[1]).decode()] = bytes(pair[2]).decode()
        elif number == 14:
            location = value
    if location != EXTERNAL:
        return None
    tensor["offset"] = int(entries.get("offset", "0"))
    tensor["length"] = fmt.tensor_len(tensor["dtype"], tensor["shape"])
    return tensor, entries["location"].removeprefix("./")


def external_tensors(model):
    for number, graph in fields(memoryview(model)):
        if number == 7:
            for inner, proto in fields(graph):
                found = external_tensor(proto) if inner == 5 else None
                if found is not None:
                    yield found


class Maker:
    def __init__(self, out):
        self.out = out
        self.key = os.urandom(32)
        self.bundle_id = os.urandom(16)
        self.assets = {}
        for folder in ("", "keys", "sig", "objects", "tmp"):
            os.mkdir(os.path.join(out, folder))
        self.write("FORMAT", fmt.FORMAT)
        self.write("lock", b"")

    def write(self, name, data):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)

    def add_asset(self, path):
        with open(path, "rb") as file:
            plain = file.read()
        asset_id = os.urandom(16)
        sealed = fmt.seal(self.key, fmt.asset_context(self.bundle_id, asset_id), plain)
        leaves = fmt.leaves_of(sealed)
        name = fmt.object_name(len(sealed), leaves)
        self.write(os.path.join("objects", name[:2], name), sealed)
        self.assets[asset_id.hex()] = {"size": len(plain), "object": name, "pieces": [leaf.hex() for leaf in leaves]}
        return asset_id.hex()

    def commit(self, variants, recipient):
        manifest = {"format": "ortcrypt/1", "bundle": self.bundle_id.hex(), "sequence": 1, "creator": "make_bundle.py",
                    "labels": {}, "assets": self.assets, "variants": variants}
        text = json.dumps(manifest, ensure_ascii=False).encode()
        sealed = fmt.seal(self.key, fmt.manifest_context(self.bundle_id), text)
        payload = (fmt.KEY_HEAD + self.bundle_id.hex().encode() + fmt.KEY_MIDDLE + base64.b64encode(self.key) + fmt.KEY_TAIL
                   + b"recipient " + recipient.encode() + b"\n")
        key_file = subprocess.run(["age", "-r", recipient], input=payload, stdout=subprocess.PIPE, check=True).stdout
        self.write(os.path.join("keys", hashlib.sha256(sealed).hexdigest() + ".age"), key_file)
        self.write("manifest", sealed)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, recipient, model_path, *external_paths = sys.argv[1:]
    maker = Maker(out)
    parts = [{"role": "model", "name": "", "asset": maker.add_asset(model_path)}]
    by_name = {}
    for path in external_paths:
        name = os.path.relpath(path, os.path.dirname(model_path) or ".")
        by_name[name] = maker.add_asset(path)
        parts.append({"role": "external", "name": name, "asset": by_name[name]})
    tensors = []
    with open(model_path, "rb") as file:
        for tensor, location in external_tensors(file.read()):
            tensors.append({**tensor, "asset": by_name[location]})
    maker.commit([{"id": "source", "kind": "source", "x-file-name": os.path.basename(model_path), "parts": parts,
                   "tensors": tensors}], recipient)


if __name__ == "__main__":
    main()
