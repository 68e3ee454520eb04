"""Small ONNX models for the command-line tests. Usage: make_models.py FOLDER"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

out = sys.argv[1]
os.makedirs(out, exist_ok=True)


def value(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def save(name, nodes, inputs, outputs, initializers=()):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    path = os.path.join(out, name + ".onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    return path


def external(name, shape, location, offset, length, dtype=T.FLOAT):
    tensor = T(name=name, data_type=dtype, dims=shape, data_location=T.EXTERNAL)
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=text)
    return tensor


# Two inputs, two outputs; the second output's name is no file name.
save("add",
     [h.make_node("Add", ["a", "b"], ["sum"]), h.make_node("Mul", ["a", "b"], ["a*b/c"])],
     [value("a", T.FLOAT, ["batch", 4]), value("b", T.FLOAT, ["batch", 4])],
     [value("sum", T.FLOAT, ["batch", 4]), value("a*b/c", T.FLOAT, ["batch", 4])])

# Every element type goes through unchanged.
kinds = {"f4": T.FLOAT, "f8": T.DOUBLE, "f2": T.FLOAT16, "i1": T.INT8, "i2": T.INT16, "i4": T.INT32, "i8": T.INT64, "u1": T.UINT8,
         "u2": T.UINT16, "u4": T.UINT32, "u8": T.UINT64, "b1": T.BOOL, "text": T.STRING}
save("types", [h.make_node("Identity", [k], [k + "_out"]) for k in kinds],
     [value(k, t, [None, 3]) for k, t in kinds.items()], [value(k + "_out", t, [None, 3]) for k, t in kinds.items()])
save("bfloat", [h.make_node("Identity", ["x"], ["y"])], [value("x", T.BFLOAT16, [2])], [value("y", T.BFLOAT16, [2])])
save("scalar", [h.make_node("Neg", ["x"], ["y"])], [value("x", T.FLOAT, [])], [value("y", T.FLOAT, [])])

# Names that a table of flags and embeddings would have.
save("masked",
     [h.make_node("Add", ["ids", "attention_mask"], ["t"]), h.make_node("Add", ["t", "token_type_ids"], ["y"])],
     [value(n, T.INT64, [1, 1000]) for n in ("ids", "attention_mask", "token_type_ids")], [value("y", T.INT64, [1, 1000])])

# Weights in a data file: a matrix and, on the next page, a vector.
rng = np.random.default_rng(7)
matrix = rng.standard_normal((64, 64), dtype=np.float32)
vector = rng.standard_normal(64, dtype=np.float32)
os.makedirs(os.path.join(out, "ext"), exist_ok=True)
with open(os.path.join(out, "ext", "weights.bin"), "wb") as file:
    file.write(matrix.tobytes())
    file.write(vector.tobytes())


def external_model(name, tensors):
    return save(os.path.join("ext", name), [h.make_node("MatMul", ["x", "w"], ["t"]), h.make_node("Add", ["t", "v"], ["y"])],
                [value("x", T.FLOAT, [1, 64])], [value("y", T.FLOAT, [1, 64])], tensors)


external_model("good", [external("w", [64, 64], "weights.bin", 0, 16384), external("v", [64], "weights.bin", 16384, 256)])
external_model("missing", [external("w", [64, 64], "gone.bin", 0, 16384), external("v", [64], "weights.bin", 16384, 256)])
external_model("short", [external("w", [64, 64], "weights.bin", 8192, 16384), external("v", [64], "weights.bin", 16384, 256)])
external_model("lfs", [external("w", [64, 64], "lfs.bin", 0, 16384), external("v", [64], "weights.bin", 16384, 256)])
external_model("overlap", [external("w", [64, 64], "weights.bin", 0, 16384), external("v", [64], "weights.bin", 16128, 256)])
external_model("outside", [external("w", [64, 64], "../outside.bin", 0, 16384), external("v", [64], "weights.bin", 16384, 256)])
external_model("absolute", [external("w", [64, 64], "/etc/passwd", 0, 16384), external("v", [64], "weights.bin", 16384, 256)])
with open(os.path.join(out, "ext", "lfs.bin"), "w") as file:
    file.write("version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 16384\n")
with open(os.path.join(out, "outside.bin"), "wb") as file:
    file.write(matrix.tobytes())

# More than 2 GiB of weights in a file that takes no room on the disk.
rows = (1 << 31) // 4096 + 1
os.makedirs(os.path.join(out, "huge"), exist_ok=True)
with open(os.path.join(out, "huge", "huge.bin"), "wb") as file:
    file.truncate(rows * 4096)
save(os.path.join("huge", "huge"), [h.make_node("MatMul", ["x", "w"], ["y"])], [value("x", T.FLOAT, [1, rows])],
     [value("y", T.FLOAT, [1, 1024])], [external("w", [rows, 1024], "huge.bin", 0, rows * 4096)])

# Values that are no tensors: nothing for an execution provider that takes tensors only.
save("sequence",
     [h.make_node("SequenceConstruct", ["x", "x"], ["s"]), h.make_node("SequenceAt", ["s", "i"], ["y"])],
     [value("x", T.FLOAT, [3]), value("i", T.INT64, [])], [value("y", T.FLOAT, [3])])
# Texts in and out.
save("strings", [h.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")],
     [value("x", T.STRING, [3])], [value("y", T.STRING, [3])])

# The same signature as `add`, other results.
save("sub",
     [h.make_node("Sub", ["a", "b"], ["sum"]), h.make_node("Mul", ["a", "b"], ["a*b/c"])],
     [value("a", T.FLOAT, ["batch", 4]), value("b", T.FLOAT, ["batch", 4])],
     [value("sum", T.FLOAT, ["batch", 4]), value("a*b/c", T.FLOAT, ["batch", 4])])

with open(os.path.join(out, "text.onnx"), "w") as file:
    file.write("this is a text, no model\n")
with open(os.path.join(out, "lfs.onnx"), "w") as file:
    file.write("version https://git-lfs.github.com/spec/v1\noid sha256:" + "cd" * 32 + "\nsize 10485760\n")
with open(os.path.join(out, "add.onnx"), "rb") as file:
    whole = file.read()
with open(os.path.join(out, "cut.onnx"), "wb") as file:
    file.write(whole[:len(whole) // 2])
with open(os.path.join(out, "empty.onnx"), "wb") as file:
    pass
