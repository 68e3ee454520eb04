"""The models that bench.py loads: a chain of MatMuls, with the weights embedded and as external data."""

import os

import numpy
import onnx
from onnx import TensorProto, helper

WIDTH = 2048  # one weight: 2048 x 2048 floats, 16 MiB
WEIGHT_LEN = WIDTH * WIDTH * 4


def weight(index):
    """Small values, so that a long chain stays finite; other bytes in every weight."""
    dice = numpy.random.default_rng(index)
    return ((dice.random((WIDTH, WIDTH), dtype=numpy.float32) - 0.5) * (2.0 / WIDTH**0.5)).tobytes()


def model_of(count, tensors):
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], ["y" if i == count - 1 else f"h{i + 1}"])
             for i in range(count)]
    shape = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, WIDTH])
    graph = helper.make_graph(nodes, "chain", [helper.make_value_info("x", shape)], [helper.make_value_info("y", shape)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def embedded_tensor(index):
    return TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], raw_data=weight(index))


def external_tensor(index, data_name):
    tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", data_name), ("offset", index * WEIGHT_LEN), ("length", WEIGHT_LEN)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def make_models(folder, mib):
    """{"external": path, "embedded": path}; weights of `mib` MiB altogether. Kept once made."""
    count = mib * 2**20 // WEIGHT_LEN
    paths = {kind: os.path.join(folder, kind + ".onnx") for kind in ("external", "embedded")}
    if not os.path.exists(paths["external"]):
        with open(paths["external"] + ".data", "wb") as file:
            for i in range(count):
                file.write(weight(i))
        onnx.save(model_of(count, [external_tensor(i, "external.onnx.data") for i in range(count)]), paths["external"] + ".new")
        os.rename(paths["external"] + ".new", paths["external"])
    if not os.path.exists(paths["embedded"]):
        onnx.save(model_of(count, [embedded_tensor(i) for i in range(count)]), paths["embedded"] + ".new")
        os.rename(paths["embedded"] + ".new", paths["embedded"])
    return paths
