#!/usr/bin/env python3
"""Opens a bundle with `age` and PyPI `cryptography` alone. Usage: open_bundle.py BUNDLE IDENTITY_FILE OUT_DIR

Writes every part of every variant to OUT_DIR/<variant>/<role>/<name> (names that are no plain relative path: asset-<id>.bin), the
original model, when it is another one, to OUT_DIR/<variant>/x-original, and prints the manifest. Exit 1 and one line when the bundle
breaks a rule of docs/format.md.
"""

import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import sys

import bundle_format as fmt
from cryptography.exceptions import InvalidTag
from recipe import follow

ROLES = {"model", "external", "initializer", "ep_context", "extra"}
HEX = re.compile(r"[0-9a-f]*")


class Refused(Exception):
    pass


def require(condition, sentence):
    if not condition:
        raise Refused(sentence)


def read(*parts):
    path = os.path.join(*parts)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        require(stat.S_ISREG(os.fstat(fd).st_mode), path + " is no regular file")
        return file.read()


def is_hex(text, digits):
    return isinstance(text, str) and len(text) == digits and HEX.fullmatch(text) is not None


def open_key_file(bundle, manifest_id, identity):
    path = os.path.join(bundle, "keys", manifest_id + ".age")
    payload = subprocess.run(["age", "-d", "-i", identity, path], stdout=subprocess.PIPE, check=True).stdout
    line = payload[:fmt.KEY_LINE_LEN]
    head, middle = len(fmt.KEY_HEAD), len(fmt.KEY_HEAD) + 32
    require(len(line) == fmt.KEY_LINE_LEN and line.startswith(fmt.KEY_HEAD) and line.endswith(fmt.KEY_TAIL)
            and line[middle:middle + len(fmt.KEY_MIDDLE)] == fmt.KEY_MIDDLE, "first line of the key file's payload")
    bundle_id = line[head:middle].decode()
    key_text = line[middle + len(fmt.KEY_MIDDLE):-len(fmt.KEY_TAIL)]
    require(is_hex(bundle_id, 32), "bundle id of the key file")
    key = base64.b64decode(key_text, validate=True)
    require(len(key) == 32 and base64.b64encode(key) == key_text, "key of the key file")
    rest = payload[fmt.KEY_LINE_LEN:].decode("utf-8")
    require(re.fullmatch(r"(recipient [^\x00-\x1f\x7f]+\n)*", rest) is not None, "recipient lines of the key file")
    return bytes.fromhex(bundle_id), key


def no_duplicates(pairs):
    require(len({key for key, _ in pairs}) == len(pairs), "a member twice in the manifest")
    return dict(pairs)


def integer(text):
    require(re.fullmatch(r"0|[1-9][0-9]*", text) is not None and int(text) < 2**53, "number " + text + " in the manifest")
    return int(text)


def refuse_number(text):
    raise Refused("number " + text + " in the manifest")


def members(thing, required, optional, what):
    require(isinstance(thing, dict), what + " is no object")
    names = {name for name in thing if not name.startswith("x-")}
    require(required <= names <= required | optional, "members of " + what)


def name_valid(text):
    return isinstance(text, str) and 1 <= len(text.encode()) <= 4096 and "\0" not in text


def check_variant(variant, assets):
    described = {"ep", "ep_version", "runtime", "device", "compatibility", "options", "embed", "verified"}
    members(variant, {"id", "kind", "parts", "tensors"}, described if variant.get("kind") == "compiled" else set(), "a variant")
    require(variant["kind"] in ("source", "compiled") and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", variant["id"]), "kind or id")
    seen = set()
    for part in variant["parts"]:
        members(part, {"role", "name", "asset"}, set(), "a part")
        require(part["role"] in ROLES and part["asset"] in assets, "role or asset of a part")
        require(part["name"] == "" if part["role"] == "model" else name_valid(part["name"]), "name of a part")
        require((part["role"], part["name"]) not in seen, "a part twice")
        seen.add((part["role"], part["name"]))
    for tensor in variant["tensors"]:
        members(tensor, {"name", "dtype", "shape", "asset", "offset", "length"}, set(), "a tensor")
        require(name_valid(tensor["name"]) and tensor["asset"] in assets, "name or asset of a tensor")
        require(tensor["dtype"] in fmt.BITS and len(tensor["shape"]) <= 64, "dtype or shape of a tensor")
        require(tensor["length"] == fmt.tensor_len(tensor["dtype"], tensor["shape"]), "length of a tensor")
        require(tensor["offset"] + tensor["length"] <= assets[tensor["asset"]]["size"], "a tensor ends outside its asset")


def check_manifest(text, bundle_id):
    manifest = json.loads(text.decode("utf-8"), object_pairs_hook=no_duplicates, parse_int=integer, parse_float=refuse_number,
                          parse_constant=refuse_number)
    members(manifest, {"format", "bundle", "sequence", "creator", "labels", "assets", "variants"}, set(), "the manifest")
    require(manifest["format"] == "ortcrypt/1" and manifest["bundle"] == bundle_id.hex(), "format or bundle")
    require(isinstance(manifest["sequence"], int) and manifest["sequence"] >= 1, "sequence")
    for asset_id, asset in manifest["assets"].items():
        members(asset, {"size", "object", "pieces"}, set(), "an asset")
        require(is_hex(asset_id, 32) and is_hex(asset["object"], 64) and all(is_hex(leaf, 64) for leaf in asset["pieces"]),
                "hex of asset " + asset_id)
        require(len(asset["pieces"]) == fmt.piece_count(asset["size"]), "pieces of asset " + asset_id)
        leaves = [bytes.fromhex(leaf) for leaf in asset["pieces"]]
        require(fmt.object_name(fmt.sealed_len(asset["size"]), leaves) == asset["object"], "object of asset " + asset_id)
    for variant in manifest["variants"]:
        check_variant(variant, manifest["assets"])
    require(len({variant["id"] for variant in manifest["variants"]}) == len(manifest["variants"]), "a variant id twice")
    return manifest


def open_asset(bundle, key, bundle_id, asset_id, asset):
    sealed = read(bundle, "objects", asset["object"][:2], asset["object"])
    require(len(sealed) == fmt.sealed_len(asset["size"]), "length of object " + asset["object"])
    require([leaf.hex() for leaf in fmt.leaves_of(sealed)] == asset["pieces"], "leaves of object " + asset["object"])
    plain = fmt.unseal(key, fmt.asset_context(bundle_id, bytes.fromhex(asset_id)), sealed)
    require(len(plain) == asset["size"], "size of asset " + asset_id)
    return plain


def write(folder, name, asset_id, plain):
    parts = name.split("/")
    if any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts) or len(parts) > 64:
        parts = ["asset-" + asset_id + ".bin"]
    path = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(plain)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, identity, out = sys.argv[1:]
    require(read(bundle, "FORMAT") == fmt.FORMAT, "FORMAT")
    sealed = read(bundle, "manifest")
    bundle_id, key = open_key_file(bundle, hashlib.sha256(sealed).hexdigest(), identity)
    manifest = check_manifest(fmt.unseal(key, fmt.manifest_context(bundle_id), sealed), bundle_id)
    assets = manifest["assets"]
    os.mkdir(out)
    for variant in manifest["variants"]:
        folder = os.path.join(out, variant["id"])
        os.mkdir(folder)
        for part in variant["parts"]:
            plain = open_asset(bundle, key, bundle_id, part["asset"], assets[part["asset"]])
            name = part["name"] or variant.get("x-file-name", "model.onnx")
            write(os.path.join(folder, part["role"]), name, part["asset"], plain)
        if "x-original" in variant:
            original = variant["x-original"]["asset"]
            write(folder, "x-original", original, open_asset(bundle, key, bundle_id, original, assets[original]))
        if "x-split" in variant:
            split = variant["x-split"]
            require("x-original" not in variant and set(split) == {"weights", "recipe", "size", "sha256"}, "x-split")
            model = next(part["asset"] for part in variant["parts"] if part["role"] == "model")
            recipe, model, weights = (open_asset(bundle, key, bundle_id, each, assets[each]) for each in (split["recipe"], model, split["weights"]))
            original = follow(recipe, model, weights)
            require(len(original) == split["size"] and hashlib.sha256(original).hexdigest() == split["sha256"], "the original of a split model")
            write(folder, "x-original", split["recipe"], original)
    print(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    try:
        main()
    except (Refused, InvalidTag, OSError, KeyError, ValueError, TypeError, subprocess.CalledProcessError) as error:
        sys.exit("open_bundle.py: %s: %s" % (type(error).__name__, error))
