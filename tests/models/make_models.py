#!/usr/bin/env python3
"""Generates the ONNX models that tests use.

    make_models.py OUT_DIR                 every small model below
    make_models.py --check OUT_DIR         runs the good ones with onnxruntime and compares
    make_models.py --big MIB --kind embedded|external OUT.onnx
                                           a chain of MatMuls with MIB of weights (OUT.onnx.data beside it for external)

Each model is OUT_DIR/<name>/<name>.onnx, with <name>.<input>.npy for its inputs and <name>.expected.<output>.npy for what comes
out, computed from the model before its weights were moved. Same bytes on every run.

name               what it is
-----------------  -------------------------------------------------------------------------------------------------------------
embedded           MLP 8-16-4, every weight inside
ext_simple         the same, three weights in weights.bin
ext_two_files      the same, in a.bin and b.bin
ext_subfolder      the same, in data/weights.bin
ext_dotslash       the same, in ./weights.bin
ext_odd            the same, location a/../weights.bin (folder a exists)
ext_no_length      one weight, external_data with a location only
ext_shared_offset  two tensors that name the same bytes of weights.bin
ext_symlink        model and weights are symbolic links into blobs/, as in a Hugging Face cache
ext_types          external float16, bfloat16, int8, int64, bool and double
ext_int4           external int4 (two in a byte, odd count), opset 21
ext_empty          an external tensor of shape [0, 4], length 0
ext_padded         weights at offset 4096 and 8192 of weights.bin, other bytes between them
ext_same_base      the same MLP, in a/weights.bin and b/weights.bin
ext_unicode        the same, in "größe ✓/gewichte.bin"
ext_unaligned      external float32, float64, float16 and int64 at odd offsets
strings            string tensors inside
functions          a local function that calls another one
opset23            RMSNormalization, IR version 11
sparse             a sparse initializer inside
int4               int4 inside
dynamic            MLP with a batch of free size "batch", external
chain              30 small nodes in a row, embedded: many partitions for an EP that limits nodes per engine
if_ext             If, each branch with an external initializer of its own
loop_ext           Loop whose body has an external initializer
scan_ext           Scan whose body has an external initializer
nested_ext         If inside a Loop, external initializers at all three levels
if_same_name       If whose branch has an embedded initializer named like an external one of the main graph
fold_transpose     y = x @ Transpose(w), w external: the optimizer folds it
fold_cast          y = x @ Cast(w to float), w external double
fold_quantize      y = x * DequantizeLinear(QuantizeLinear(w)), w external
constant_ext       Constant node with an external value (for the scanner; runtimes differ)
sparse_ext         sparse initializer with external values and indices (for the scanner)
function_ext       local function with a Constant that has an external value (for the scanner)
ext_overlap        refuse: two tensors overlap in part
ext_short          refuse: weights.bin ends 4 bytes early
ext_lfs            refuse: weights.bin is a Git LFS pointer
ext_missing        refuse: there is no weights.bin
ext_outside        refuse: location ../ext_outside_weights.bin (the file exists)
ext_absolute       refuse: location /proc/self/exe (the file exists)
ext_mem_addr       refuse: location */_ORT_MEM_ADDR_/*, which ORT takes for an address
ext_twice          refuse: two external_data entries "location"
ext_not_utf8       refuse: a location that is no UTF-8
not_onnx           folder of files that are no model: gzip zip ort json html lfs empty random text no_graph safetensors truncated
"""

import argparse
import copy
import gzip
import io
import os
import sys
import zipfile

import graphs
import numpy as np
import onnx
from big_model import WIDTH, big_model
from graphs import dice, floats, info, model, tensor
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 123456789\n"


# -- where tensors are ---------------------------------------------------------------------------------------------------------

def graphs_of_node(node):
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def tensors_of_nodes(nodes):
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in graphs_of_node(node):
            yield from tensors_of_graph(graph)


def tensors_of_graph(graph):
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from tensors_of_nodes(graph.node)


def tensors_of(m):
    yield from tensors_of_graph(m.graph)
    for function in m.functions:
        yield from tensors_of_nodes(function.node)


def raw_of(t):
    """A tensor's bytes as external data has them."""
    if t.HasField("raw_data"):
        return t.raw_data
    return numpy_helper.from_array(numpy_helper.to_array(t), "").raw_data


def move_out(m, places):
    """places: {tensor name: (location, offset or None)}. Returns the model and {location: bytes}."""
    files = {}
    for t in tensors_of(m):
        if t.name not in places:
            continue
        location, offset = places[t.name]
        data = raw_of(t)
        content = files.setdefault(location, bytearray())
        at = offset or 0
        if len(content) < at + len(data):
            content.extend(b"\xee" * (at + len(data) - len(content)))
        content[at:at + len(data)] = data
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            t.ClearField(field)
        t.data_location = TensorProto.EXTERNAL
        t.external_data.add(key="location", value=location)
        if offset is not None:
            t.external_data.add(key="offset", value=str(offset))
            t.external_data.add(key="length", value=str(len(data)))
    return m, files


def in_order(location, m, names):
    """Places for the named tensors one behind the other in one file."""
    sizes = {t.name: len(raw_of(t)) for t in tensors_of(m)}
    places, at = {}, 0
    for name in names:
        places[name] = (location, at)
        at += sizes[name]
    return places


# -- writing -------------------------------------------------------------------------------------------------------------------

class Writer:
    def __init__(self, out_dir):
        self.out_dir = out_dir

    def folder(self, name):
        path = os.path.join(self.out_dir, name)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, name, file, content):
        path = os.path.join(self.folder(name), file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as handle:
            handle.write(content)
        return path

    def inputs(self, m):
        values = {}
        for i, value in enumerate(m.graph.input):
            kind = value.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else 3 for d in kind.shape.dim]
            values[value.name] = np.array(True) if kind.elem_type == TensorProto.BOOL else floats(100 + i, *shape)
        return values

    def vectors(self, name, m):
        values = self.inputs(m)
        results = ReferenceEvaluator(m).run(None, values)
        for key, array in values.items():
            np.save(os.path.join(self.folder(name), f"{name}.{key}.npy"), array)
        for output, array in zip(m.graph.output, results):
            np.save(os.path.join(self.folder(name), f"{name}.expected.{output.name}.npy"), array)

    def put(self, name, m, places=(), vectors=True, keep=lambda files: files, change=lambda data: data, check=True):
        """Writes one model, with the tensors of `places` moved out; `keep` changes the data files, `change` the model's bytes."""
        if check:
            onnx.checker.check_model(m)
        if vectors:
            self.vectors(name, m)
        moved, files = move_out(copy.deepcopy(m), dict(places))
        self.write(name, name + ".onnx", change(moved.SerializeToString(deterministic=True)))
        for location, content in keep(files).items():
            self.write(name, location, bytes(content))


def good_models(w):
    m = graphs.mlp()
    w.put("embedded", m)
    w.put("ext_simple", m, in_order("weights.bin", m, graphs.MLP_WEIGHTS))
    w.put("ext_two_files", m, {**in_order("a.bin", m, ("w1", "b1")), "w2": ("b.bin", 0)})
    w.put("ext_subfolder", m, in_order("data/weights.bin", m, graphs.MLP_WEIGHTS))
    w.put("ext_dotslash", m, in_order("./weights.bin", m, graphs.MLP_WEIGHTS))
    os.makedirs(os.path.join(w.folder("ext_odd"), "a"), exist_ok=True)
    w.put("ext_odd", m, in_order("a/../weights.bin", m, graphs.MLP_WEIGHTS))
    w.put("ext_no_length", m, {"w1": ("weights.bin", None)})
    w.put("ext_padded", m, {"w1": ("weights.bin", 4096), "w2": ("weights.bin", 8192)})
    w.put("ext_shared_offset", graphs.shared(), {"w1": ("weights.bin", 0), "w2": ("weights.bin", 0), "b": ("weights.bin", 128)})
    w.put("ext_types", graphs.types(), in_order("weights.bin", graphs.types(), ("half", "brain", "small", "index", "mask", "wide")))
    w.put("ext_int4", graphs.int4(), {"w": ("weights.bin", 0)})
    w.put("ext_empty", graphs.empty(), {"nothing": ("weights.bin", 0), "w": ("weights.bin", 0)})
    w.put("ext_same_base", m, {**in_order("a/weights.bin", m, ("w1", "b1")), "w2": ("b/weights.bin", 0)})
    w.put("ext_unicode", m, in_order("größe ✓/gewichte.bin", m, graphs.MLP_WEIGHTS))
    odd = {"w": ("weights.bin", 3), "b": ("weights.bin", 1189), "wide": ("weights.bin", 1341), "half": ("weights.bin", 1639),
           "index": ("weights.bin", 1717)}
    w.put("ext_unaligned", graphs.unaligned(), odd)
    w.put("strings", graphs.strings())
    w.put("functions", graphs.functions())
    w.put("opset23", graphs.opset23(), {"w": ("weights.bin", 0)})
    w.put("int4", graphs.int4())
    sparse, dense = graphs.sparse()
    w.put("sparse", sparse, vectors=False, check=False)
    w.vectors("sparse", dense)
    dynamic = graphs.mlp("batch")
    w.put("dynamic", dynamic, in_order("weights.bin", dynamic, graphs.MLP_WEIGHTS))
    w.put("chain", graphs.chain())
    w.put("fold_transpose", graphs.fold_transpose(), {"w": ("weights.bin", 0)})
    w.put("fold_cast", graphs.fold_cast(), {"w": ("weights.bin", 0)})
    w.put("fold_quantize", graphs.fold_quantize(), {"w": ("weights.bin", 0)})


def symlink_model(w):
    m = graphs.mlp()
    w.put("ext_symlink", m, in_order("weights.bin", m, graphs.MLP_WEIGHTS))
    folder = w.folder("ext_symlink")
    os.makedirs(os.path.join(folder, "blobs"), exist_ok=True)
    for i, file in enumerate(("ext_symlink.onnx", "weights.bin")):
        blob = f"blobs/{i + 1:064x}"
        os.replace(os.path.join(folder, file), os.path.join(folder, blob))
        os.symlink(blob, os.path.join(folder, file))


def control_flow_models(w):
    w.put("if_ext", graphs.if_model(), {"then_w": ("weights.bin", 0), "else_w": ("weights.bin", 32)})
    w.put("loop_ext", graphs.loop_model(graphs.loop_body()), {"body_w": ("weights.bin", 0)})
    w.put("scan_ext", graphs.scan_model(), {"scan_w": ("weights.bin", 0)})
    w.put("nested_ext", graphs.nested(), {"w": ("weights.bin", 0), "body_w": ("weights.bin", 32), "deep_then_w": ("weights.bin", 288),
                                   "deep_else_w": ("weights.bin", 320)})
    add = helper.make_node("Add", ["branched", "w"], ["y"])
    same = graphs.if_model("w", "else_w", [add], [tensor("w", floats(19, 8))], "branched")
    moved = copy.deepcopy(same)
    outer = model([add], [info("branched", [1, 8])], [info("y", [1, 8])], [same.graph.initializer[0]])
    outer, files = move_out(outer, {"w": ("weights.bin", 0)})
    moved.graph.initializer[0].CopyFrom(outer.graph.initializer[0])
    w.write("if_same_name", "if_same_name.onnx", moved.SerializeToString(deterministic=True))
    w.write("if_same_name", "weights.bin", bytes(files["weights.bin"]))


def scanner_models(w):
    w.put("constant_ext", graphs.constant_ext(), {"c": ("weights.bin", 0)})
    w.put("sparse_ext", graphs.sparse_ext(), {"sparse_w": ("weights.bin", 0), "sparse_indices": ("weights.bin", 24)}, vectors=False, check=False)
    w.put("function_ext", graphs.function_ext(), {"function_w": ("weights.bin", 0)})


def bad_models(w):
    m = graphs.mlp()
    places = in_order("weights.bin", m, graphs.MLP_WEIGHTS)
    w.put("ext_overlap", m, {**places, "b1": ("weights.bin", places["b1"][1] - 32)}, vectors=False)
    w.put("ext_short", m, places, vectors=False, keep=lambda files: {k: v[:-4] for k, v in files.items()})
    w.put("ext_lfs", m, places, vectors=False, keep=lambda files: {k: LFS for k in files})
    w.put("ext_missing", m, places, vectors=False, keep=lambda files: {})
    w.put("ext_outside", m, in_order("../ext_outside_weights.bin", m, graphs.MLP_WEIGHTS), vectors=False)
    w.put("ext_absolute", m, in_order("/proc/self/exe", m, graphs.MLP_WEIGHTS), vectors=False, keep=lambda files: {})
    w.put("ext_mem_addr", m, {"w1": ("*/_ORT_MEM_ADDR_/*", 4096)}, vectors=False, keep=lambda files: {})
    w.put("ext_not_utf8", m, in_order("weights.bin", m, graphs.MLP_WEIGHTS), vectors=False,
          change=lambda data: data.replace(b"weights.bin", b"weights\xffbin"))
    twice, files = move_out(copy.deepcopy(m), places)
    twice.graph.initializer[0].external_data.add(key="location", value="other.bin")
    w.write("ext_twice", "ext_twice.onnx", twice.SerializeToString(deterministic=True))
    w.write("ext_twice", "weights.bin", bytes(files["weights.bin"]))
    w.write("ext_twice", "other.bin", bytes(files["weights.bin"]))


def not_onnx(w):
    data = graphs.mlp().SerializeToString(deterministic=True)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo("model.onnx"), data)
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    no_graph = onnx.ModelProto(ir_version=8, producer_name="ortcrypt tests")
    for name, content in (("gzip", gzip.compress(data, mtime=0)), ("zip", archive.getvalue()), ("ort", b"\x20\0\0\0ORTM" + data),
                          ("json", b'{"ir_version": 8}\n'), ("html", b"<!DOCTYPE html>\n<html></html>\n"), ("lfs", LFS), ("empty", b""),
                          ("random", dice(99).bytes(4096)), ("text", b"this is no model\n"), ("no_graph", no_graph.SerializeToString()),
                          ("safetensors", len(header).to_bytes(8, "little") + header + bytes(4)), ("truncated", data[:len(data) // 2])):
        w.write("not_onnx", name + ".onnx", content)


# -- checking ------------------------------------------------------------------------------------------------------------------

def check(out_dir):
    import onnxruntime as ort
    wrong = 0
    for name in sorted(os.listdir(out_dir)):
        folder = os.path.join(out_dir, name)
        path = os.path.join(folder, name + ".onnx")
        if not os.path.isdir(folder) or name in ("constant_ext", "sparse_ext", "function_ext"):
            continue
        expected = [f for f in os.listdir(folder) if f.startswith(name + ".expected.")]
        if not expected:
            continue
        try:
            session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            feeds = {i.name: np.load(os.path.join(folder, f"{name}.{i.name}.npy")) for i in session.get_inputs()}
            results = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
            same = all(np.allclose(results[f[len(name) + 10:-4]], np.load(os.path.join(folder, f)), atol=1e-5) for f in expected)
            print(name, "same" if same else "DIFFERENT")
        except Exception as fault:  # one line for whatever onnxruntime throws
            same = False
            print(name, "FAILS:", str(fault).splitlines()[0])
        wrong += not same
    return wrong


def main():
    parser = argparse.ArgumentParser(description="generates the ONNX models that tests use")
    parser.add_argument("out")
    parser.add_argument("--check", action="store_true", help="run what is there with onnxruntime instead")
    parser.add_argument("--big", type=int, metavar="MIB", help="one model with that much weight")
    parser.add_argument("--kind", choices=("embedded", "external"), default="external")
    parser.add_argument("--width", type=int, default=WIDTH, help="with --big: of a layer, whose weights are width x width floats")
    options = parser.parse_args()
    if options.check:
        sys.exit(1 if check(options.out) else 0)
    if options.big is not None:
        big_model(options.out, options.big, options.kind, options.width)
        return
    os.makedirs(options.out, exist_ok=True)
    writer = Writer(options.out)
    for part in (good_models, symlink_model, control_flow_models, scanner_models, bad_models, not_onnx):
        part(writer)


if __name__ == "__main__":
    main()
