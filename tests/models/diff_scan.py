#!/usr/bin/env python3
"""Compares the ONNX scanner and rewriter with protobuf's parsers.

    diff_scan.py [--mutations N] [--seed N] [--keep FILE] TEST_ONNX_MODELS DEPS

TEST_ONNX_MODELS is the built test program (it answers with --serve), DEPS the folder of models/ and testmodels/.

Two oracles read every model: python's protobuf (upb) and the C++ parser inside onnx, which writes back what it understood. The
rule: a tensor that an oracle takes for external is in the scanner's list, with the same location and offset, or the model is
refused; the same for EPContext nodes. Real and generated models must be understood in full; broken ones are made by changing the
tree of fields (doubling, splitting, moving, retyping, spelling numbers otherwise), so that the lengths around a change stay right.
"""

import argparse
import glob
import json
import os
import random
import struct
import subprocess
import sys

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "interop"))
from mutations import mutate, tree, twist_bytes  # noqa: E402
from recipe import follow  # noqa: E402  (beside the other programs that know the format)

REFUSED = {"ext_mem_addr", "ext_not_utf8", "ext_twice"}  # of the generated models; the other bad ones are bad by their files
EXTERNAL = TensorProto.EXTERNAL


class Scanner:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, letter, model):
        self.process.stdin.write(letter + struct.pack("<I", len(model)) + model)
        self.process.stdin.flush()
        head = self.process.stdout.read(4)
        if len(head) != 4:
            raise SystemExit(f"the scanner ended ({self.process.wait()})")
        return self.process.stdout.read(struct.unpack("<I", head)[0])

    def scan(self, model):
        return json.loads(self.ask(b"S", model))

    def inlined(self, model):
        return self.ask(b"I", model)

    def moved_out(self, model):
        """(split model, recipe)"""
        both = self.ask(b"O", model)
        end = 4 + struct.unpack("<I", both[:4])[0]
        return both[4:end], both[end:]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


# -- what an oracle understood -------------------------------------------------------------------------------------------------

def messages(root):
    """Every message in a message, itself included, whatever field it stands in."""
    stack = [root]
    while stack:
        message = stack.pop()
        yield message
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                many = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
                stack.extend(value if many else [value])


def externals(model):
    """(location, offset) of each tensor that ORT's HasExternalData takes for external (UNDEFINED ones are not, for ORT)."""
    found = []
    for message in messages(model):
        if message.DESCRIPTOR.name == "TensorProto" and message.data_location == EXTERNAL and message.data_type != 0:
            entries = {e.key: e.value for e in message.external_data}
            found.append((entries.get("location", ""), entries.get("offset", "0")))
    return sorted(found)


def ep_contexts(model):
    found = []
    for message in messages(model):
        if message.DESCRIPTOR.name == "NodeProto" and (message.op_type, message.domain) == ("EPContext", "com.microsoft"):
            values = {a.name: a for a in message.attribute}
            main = values["main_context"].i if "main_context" in values else 1
            embed = values["embed_mode"].i if "embed_mode" in values else 1
            cache = values["ep_cache_context"].s if "ep_cache_context" in values else b""
            found.append((main, embed, cache.decode("utf-8", "replace") if embed == 0 else None, len(cache)))
    return sorted(found, key=str)


def python_reads(data):
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError):
        return None
    return model


def cpp_reads(data):
    """The C++ parser's view: shape inference without any type check parses, and serializes what it parsed."""
    try:
        return python_reads(onnx.onnx_cpp2py_export.shape_inference.infer_shapes(data, False, False, False))
    except Exception:  # noqa: BLE001  (whatever it throws: it did not read the model)
        return None


def hidden(scanned, model):
    """What the model has and the scanner does not show; None when nothing."""
    wanted = externals(model)
    shown = sorted((t["location"], str(t["offset"])) for t in scanned["tensors"] if t["external"])
    for place in wanted:
        if place not in shown:
            return f"external tensor {place}"
        shown.remove(place)
    contexts = sorted(((c["main"], c["embed"], c["cache"], c["len"]) for c in scanned["ep_contexts"]), key=str)
    if contexts != ep_contexts(model):
        return f"EPContext nodes {ep_contexts(model)}, shown {contexts}"
    return None


# -- whole models --------------------------------------------------------------------------------------------------------------

def initializers(graph):
    for tensor in graph.initializer:
        yield tensor
    for node in graph.node:
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from initializers(inner)


def check_good(path, data, scanner):
    scanned, model = scanner.scan(data), python_reads(data)
    if not scanned["accepted"]:
        return f"refused: {scanned['message']}"
    lost = hidden(scanned, model)
    if lost:
        return lost
    named = sorted((t["name"], t["dtype"], tuple(t["shape"])) for t in scanned["tensors"] if not t["external"])
    expected = sorted((t.name, t.data_type, tuple(t.dims)) for t in initializers(model.graph) if t.data_location != EXTERNAL)
    if named != expected or scanned["nodes"] != len(model.graph.node):
        return "other initializers or nodes"
    raw = {t.name: t.raw_data for t in initializers(model.graph)}
    for t in scanned["tensors"]:
        if t["raw_len"] and t["main"] and data[t["raw_off"]:t["raw_off"] + t["raw_len"]] != raw[t["name"]]:
            return f"raw_data of {t['name']} is elsewhere"
    return check_moved(data, scanner) or check_inlined(data, scanned, model, scanner)


def check_moved(data, scanner):
    """Moving out gives the model that protobuf makes by setting the fields, and the recipe, followed in Python, the bytes from before."""
    split, recipe = scanner.moved_out(data)
    model, weights = python_reads(data), b""
    for tensor in model.graph.initializer:
        others = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
        if tensor.name and tensor.raw_data and tensor.data_type != TensorProto.STRING and not any(len(getattr(tensor, field)) for field in others):
            entries = (("location", "moved"), ("offset", len(weights)), ("length", len(tensor.raw_data)))
            weights += tensor.raw_data
            tensor.ClearField("raw_data")
            del tensor.external_data[:]
            for key, value in entries:
                tensor.external_data.add(key=key, value=str(value))
            tensor.data_location = EXTERNAL
    if python_reads(split) != model:
        return "moved out otherwise than protobuf does"
    return None if follow(recipe, split, weights) == data else "the recipe does not lead back"


def check_inlined(data, scanned, model, scanner):
    """Inlining gives the model that protobuf makes by setting the fields."""
    order = {(t["name"], t["location"], t["offset"]): (i, t["length"]) for i, t in enumerate(scanned["tensors"]) if t["external"]}
    for message in list(messages(model)):
        if message.DESCRIPTOR.name == "TensorProto" and message.data_location == EXTERNAL:
            entries = {e.key: e.value for e in message.external_data}
            index, length = order[message.name, entries["location"], int(entries.get("offset", "0"))]
            message.ClearField("external_data")
            message.ClearField("data_location")
            message.raw_data = bytes((7 * index + k) % 251 for k in range(length))
    inlined = python_reads(scanner.inlined(data))
    return None if inlined == model else "inlined otherwise than protobuf does"


# -- broken models -------------------------------------------------------------------------------------------------------------

def every_place():
    """External tensors in the places that no generated model has."""
    def tensor(name):
        made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=EXTERNAL)
        made.external_data.add(key="location", value=name + ".bin")
        return made
    model = onnx.ModelProto(ir_version=8)
    attributes = [model.graph.node.add(op_type="Any").attribute.add(name="a") for _ in range(4)]
    attributes[0].tensors.append(tensor("t1"))
    attributes[1].sparse_tensor.values.CopyFrom(tensor("t2"))
    attributes[2].sparse_tensors.add().indices.CopyFrom(tensor("t3"))
    attributes[3].graphs.add().initializer.append(tensor("t4"))
    training = model.training_info.add()
    training.initialization.initializer.append(tensor("t5"))
    training.algorithm.sparse_initializer.add().values.CopyFrom(tensor("t6"))
    model.functions.add(name="f").attribute_proto.add(name="d").t.CopyFrom(tensor("t7"))
    return model.SerializeToString()


def seeds(deps):
    """Small models that have every kind of place."""
    found = [every_place()]
    for name in ("ext_simple", "if_ext", "nested_ext", "sparse_ext", "function_ext", "constant_ext", "ext_no_length"):
        with open(os.path.join(deps, "testmodels", name, name + ".onnx"), "rb") as file:
            found.append(file.read())
    node = onnx.helper.make_node("EPContext", ["x"], ["y"], "n", domain="com.microsoft", embed_mode=0, ep_cache_context="ctx.bin",
                                 main_context=1, source="E", partition_name="p")
    graph = onnx.helper.make_graph([node], "g", [], [])
    found.append(onnx.helper.make_model(graph, ir_version=8).SerializeToString())
    return found


def run_mutations(count, seed, scanner, deps, keep):
    dice = random.Random(seed)
    originals = seeds(deps)
    trees = [tree(data, "Model") for data in originals]
    tally = {"accepted": 0, "refused": 0, "read by python": 0, "read by C++": 0, "refused though read": 0}
    for number in range(count):
        which = dice.randrange(len(trees))
        fields = [f.copy() for f in trees[which]]
        for _ in range(dice.choice((1, 1, 2, 3))):
            mutate(fields, dice)
        data = b"".join(f.encode() for f in fields)
        if dice.randrange(8) == 0 and data:
            data = twist_bytes(data, dice)
        scanned = scanner.scan(data)
        views = {"python": python_reads(data), "C++": cpp_reads(data)}
        tally["accepted" if scanned["accepted"] else "refused"] += 1
        tally["read by python"] += views["python"] is not None
        tally["read by C++"] += views["C++"] is not None
        tally["refused though read"] += not scanned["accepted"] and views["python"] is not None
        for oracle, model in views.items():
            lost = hidden(scanned, model) if scanned["accepted"] and model is not None else None
            if lost:
                with open(keep, "wb") as file:
                    file.write(data)
                return f"mutation {number}: {oracle} sees {lost}; the model is in {keep}"
    print("mutations:", ", ".join(f"{value} {key}" for key, value in tally.items()))
    if count >= 1000 and min(tally["accepted"], tally["refused"], tally["read by C++"]) < count // 20:
        return "the mutations do not exercise both answers"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("deps")
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default=os.devnull)
    options = parser.parse_args()
    scanner = Scanner(options.program)
    paths = glob.glob(os.path.join(options.deps, "models", "*.onnx")) + glob.glob(os.path.join(options.deps, "testmodels", "*", "*.onnx"))
    faults = [] if len(paths) > 30 else [f"only {len(paths)} models in {options.deps}: run tools/setup"]
    for path in sorted(paths):
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, "rb") as file:
            data = file.read()
        if os.path.basename(os.path.dirname(path)) == "not_onnx" or name in REFUSED:
            fault = "accepted" if scanner.scan(data)["accepted"] else None
        else:
            fault = check_good(path, data, scanner)
        faults += [f"{path}: {fault}"] if fault else []
    fault = run_mutations(options.mutations, options.seed, scanner, options.deps, options.keep) if not faults else None
    faults += [fault] if fault else []
    status = scanner.close()
    faults += [f"the scanner ended with {status}"] if status else []
    for line in faults:
        print(line, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
