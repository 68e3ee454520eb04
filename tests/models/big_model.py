"""A chain of MatMuls with as many weights as wanted. Protobuf is written by hand, so that one layer at a time is in memory."""

import os

import numpy as np
from graphs import FLOAT, dice, info, model
from onnx import TensorProto, helper

WIDTH = 2048  # of a layer, by default


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, content_len):
    return varint(number << 3 | 2) + varint(content_len)


def layer(index, width):
    return (dice(index).random((width, width), dtype=np.float32) - np.float32(0.5)) * np.float32(2 / width**0.5)


def big_model(path, mib, kind, width=WIDTH):
    layer_len = width * width * 4
    count = max(1, mib * 2**20 // layer_len)
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], ["y" if i == count - 1 else f"h{i + 1}"]) for i in range(count)]
    m = model(nodes, [info("x", [1, width])], [info("y", [1, width])], [])
    heads = []
    for i in range(count):
        t = TensorProto(name=f"w{i}", data_type=FLOAT, dims=[width, width])
        if kind == "external":
            t.data_location = TensorProto.EXTERNAL
            for key, value in (("location", os.path.basename(path) + ".data"), ("offset", i * layer_len), ("length", layer_len)):
                t.external_data.add(key=key, value=str(value))
        heads.append(t.SerializeToString(deterministic=True))
    raw = field(9, layer_len) if kind == "embedded" else b""
    raw_len = layer_len if kind == "embedded" else 0
    sizes = [len(head) + len(raw) + raw_len for head in heads]
    graph = m.graph.SerializeToString(deterministic=True)
    m.ClearField("graph")
    with open(path, "wb") as file:
        file.write(m.SerializeToString(deterministic=True))
        file.write(field(7, len(graph) + sum(len(field(5, size)) + size for size in sizes)) + graph)
        for i, (head, size) in enumerate(zip(heads, sizes)):
            file.write(field(5, size) + head + raw)
            if kind == "embedded":
                file.write(layer(i, width).tobytes())
    if kind == "external":
        with open(path + ".data", "wb") as file:
            for i in range(count):
                file.write(layer(i, width).tobytes())
