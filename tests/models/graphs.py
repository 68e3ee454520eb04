"""The graphs of make_models.py, every weight inside. The seeds are fixed: the same bytes on every run."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def dice(seed):
    return np.random.default_rng(seed)


def floats(seed, *shape):
    return (dice(seed).random(shape, dtype=np.float32) - 0.5).astype(np.float32)


def info(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def tensor(name, array):
    return numpy_helper.from_array(array, name)


def model(nodes, inputs, outputs, initializers, opset=17, functions=(), extra_opsets=()):
    graph = helper.make_graph(nodes, "main", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset), *extra_opsets]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 19 else 10, functions=functions)
    made.producer_name = "ortcrypt tests"
    return made


def mlp(batch=1):
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h1"]), helper.make_node("Add", ["h1", "b1"], ["h2"]),
             helper.make_node("Relu", ["h2"], ["h3"]), helper.make_node("MatMul", ["h3", "w2"], ["y"])]
    weights = [tensor("w1", floats(1, 8, 16)), tensor("b1", floats(2, 16)), tensor("w2", floats(3, 16, 4))]
    return model(nodes, [info("x", [batch, 8])], [info("y", [batch, 4])], weights)


MLP_WEIGHTS = ("w1", "b1", "w2")


def one_weight(nodes, weight, opset=17, more=(), out=4):
    return model(nodes, [info("x", [1, 8])], [info("y", [1, out])], [weight, *more], opset)


def shared():
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Add", ["h", "b"], ["h2"]),
             helper.make_node("MatMul", ["x", "w2"], ["h3"]), helper.make_node("Mul", ["h2", "h3"], ["y"])]
    weights = [tensor("w1", floats(4, 8, 4)), tensor("w2", floats(4, 8, 4)), tensor("b", floats(5, 4))]
    return model(nodes, [info("x", [1, 8])], [info("y", [1, 4])], weights)


def types():
    nodes = [helper.make_node("Cast", ["half"], ["half_f"], to=FLOAT), helper.make_node("Add", ["x", "half_f"], ["h1"]),
             helper.make_node("Cast", ["brain"], ["brain_f"], to=FLOAT), helper.make_node("Add", ["h1", "brain_f"], ["h2"]),
             helper.make_node("DequantizeLinear", ["small", "scale"], ["small_f"]), helper.make_node("Add", ["h2", "small_f"], ["h3"]),
             helper.make_node("Gather", ["h3", "index"], ["h4"], axis=1), helper.make_node("Where", ["mask", "h4", "x"], ["h5"]),
             helper.make_node("Cast", ["wide"], ["wide_f"], to=FLOAT), helper.make_node("Mul", ["h5", "wide_f"], ["y"])]
    weights = [tensor("half", floats(6, 8).astype(np.float16)), tensor("brain", floats(7, 8).astype(ml_dtypes.bfloat16)),
               tensor("small", dice(8).integers(-128, 128, 8).astype(np.int8)), tensor("scale", np.float32(0.03125)),
               tensor("index", np.arange(7, -1, -1, dtype=np.int64)), tensor("mask", np.arange(8) % 2 == 0),
               tensor("wide", floats(9, 8).astype(np.float64))]
    return model(nodes, [info("x", [1, 8])], [info("y", [1, 8])], weights, opset=19)


def int4():
    weight = helper.make_tensor("w", TensorProto.INT4, [3, 3], dice(10).integers(-8, 8, 9).tolist())
    weight.raw_data = numpy_helper.from_array(numpy_helper.to_array(weight), "w").raw_data
    weight.ClearField("int32_data")
    nodes = [helper.make_node("DequantizeLinear", ["w", "scale"], ["wf"]), helper.make_node("Add", ["x", "wf"], ["y"])]
    return model(nodes, [info("x", [1, 3])], [info("y", [3, 3])], [weight, tensor("scale", np.float32(0.25))], opset=21)


def empty():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Concat", ["h", "nothing"], ["y"], axis=0)]
    return one_weight(nodes, tensor("w", floats(11, 8, 4)), more=[tensor("nothing", np.zeros((0, 4), np.float32))])


def chain():
    nodes, weights = [], []
    for i in range(15):
        weights += [tensor(f"s{i}", floats(20 + i, 8) + np.float32(1)), tensor(f"a{i}", floats(40 + i, 8))]
        nodes += [helper.make_node("Mul", [f"h{2 * i}" if i else "x", f"s{i}"], [f"h{2 * i + 1}"]),
                  helper.make_node("Add", [f"h{2 * i + 1}", f"a{i}"], [f"h{2 * i + 2}" if i < 14 else "y"])]
    return model(nodes, [info("x", [1, 8])], [info("y", [1, 8])], weights)


def branch(name, op, weight, array):
    return helper.make_graph([helper.make_node(op, ["x", weight], [name + "_out"])], name, [], [info(name + "_out", [1, 8])],
                             [tensor(weight, array)])


def if_model(then_name="then_w", else_name="else_w", more_nodes=(), more=(), result="y"):
    node = helper.make_node("If", ["cond"], [result], then_branch=branch("then", "Add", then_name, floats(12, 8)),
                            else_branch=branch("else", "Mul", else_name, floats(13, 8)))
    return model([node, *more_nodes], [info("cond", [], TensorProto.BOOL), info("x", [1, 8])], [info("y", [1, 8])], list(more))


def loop_body(extra_nodes=None, weight="body_w"):
    nodes = [helper.make_node("MatMul", ["h_in", weight], ["h_mid"]), *(extra_nodes or [helper.make_node("Identity", ["h_mid"], ["h_out"])]),
             helper.make_node("Identity", ["go_in"], ["go_out"])]
    return helper.make_graph(nodes, "body", [info("i", [], TensorProto.INT64), info("go_in", [], TensorProto.BOOL), info("h_in", [1, 8])],
                             [info("go_out", [], TensorProto.BOOL), info("h_out", [1, 8])], [tensor(weight, floats(14, 8, 8))])


def loop_model(body, more=(), nodes=()):
    node = helper.make_node("Loop", ["trips", "go", "x"], ["y" if not nodes else "looped"], body=body)
    weights = [tensor("trips", np.array(3, np.int64)), tensor("go", np.array(True)), *more]
    return model([node, *nodes], [info("x", [1, 8])], [info("y", [1, 8])], weights)


def nested():
    def inner(name, op, weight, seed):
        return helper.make_graph([helper.make_node(op, ["h_mid", weight], [name + "_out"])], name, [], [info(name + "_out", [1, 8])],
                                 [tensor(weight, floats(seed, 8))])
    cond = [helper.make_node("Mod", ["i", "two"], ["odd"]), helper.make_node("Cast", ["odd"], ["odd_b"], to=TensorProto.BOOL),
            helper.make_node("If", ["odd_b"], ["h_out"], then_branch=inner("deep_then", "Add", "deep_then_w", 15),
                             else_branch=inner("deep_else", "Mul", "deep_else_w", 16))]
    body = loop_body(cond)
    body.initializer.append(tensor("two", np.array(2, np.int64)))
    return loop_model(body, [tensor("w", floats(17, 8))], [helper.make_node("Add", ["looped", "w"], ["y"])])


def scan_model():
    nodes = [helper.make_node("Add", ["sum_in", "x_t"], ["s"]), helper.make_node("Mul", ["s", "scan_w"], ["sum_out"]),
             helper.make_node("Identity", ["sum_out"], ["y_t"])]
    body = helper.make_graph(nodes, "body", [info("sum_in", [8]), info("x_t", [8])], [info("sum_out", [8]), info("y_t", [8])],
                             [tensor("scan_w", floats(18, 8))])
    node = helper.make_node("Scan", ["start", "x"], ["last", "y"], num_scan_inputs=1, body=body)
    return model([node], [info("x", [4, 8])], [info("last", [8]), info("y", [4, 8])], [tensor("start", np.zeros(8, np.float32))])


def fold(nodes, weight, more=()):
    return one_weight([*nodes, helper.make_node("MatMul", ["x", "f"], ["y"])], weight, opset=19, more=more)


def fold_transpose():
    return fold([helper.make_node("Transpose", ["w"], ["f"], perm=[1, 0])], tensor("w", floats(30, 4, 8)))


def fold_cast():
    return fold([helper.make_node("Cast", ["w"], ["f"], to=FLOAT)], tensor("w", floats(31, 8, 4).astype(np.float64)))


def fold_quantize():
    nodes = [helper.make_node("QuantizeLinear", ["w", "scale", "zero"], ["q"]), helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["f"])]
    nodes.append(helper.make_node("Mul", ["x", "f"], ["y"]))  # no MatMul: ORT would fuse it into one of less precision
    return one_weight(nodes, tensor("w", floats(32, 1, 8)), 19, out=8, more=[tensor("scale", np.float32(1 / 128)), tensor("zero", np.int8(0))])


def constant_node(value_name="c"):
    return helper.make_node("Constant", [], ["w"], value=tensor(value_name, floats(33, 8, 4)))


def constant_ext():
    return model([constant_node(), helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", [1, 8])], [info("y", [1, 4])], [])


def unaligned():
    """Every element size, for data at odd offsets; conversions and a Gemm, whose loops run over the weights themselves."""
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h1"]), helper.make_node("Cast", ["wide"], ["wide_f"], to=FLOAT),
             helper.make_node("Mul", ["h1", "wide_f"], ["h2"]), helper.make_node("Cast", ["half"], ["half_f"], to=FLOAT),
             helper.make_node("Add", ["h2", "half_f"], ["h3"]), helper.make_node("Gather", ["h3", "index"], ["y"], axis=1)]
    weights = [tensor("w", floats(50, 8, 37)), tensor("b", floats(51, 37)), tensor("wide", floats(52, 37).astype(np.float64)),
               tensor("half", floats(53, 37).astype(np.float16)), tensor("index", np.arange(36, 17, -1, dtype=np.int64))]
    return model(nodes, [info("x", [1, 8])], [info("y", [1, 19])], weights)


def strings():
    same = [helper.make_node("Equal", ["these", "those"], ["same"]), helper.make_node("Cast", ["same"], ["same_f"], to=FLOAT),
            helper.make_node("Add", ["x", "same_f"], ["y"])]
    words = np.array(["", "ja", "größer", "x" * 300, "a", "b", "c", "d"], dtype=object)
    others = np.array(["", "nein", "größer", "x" * 300, "a", "B", "c", ""], dtype=object)
    return model(same, [info("x", [1, 8])], [info("y", [1, 8])], [tensor("these", words), tensor("those", others)], opset=19)


def functions():
    """A local function that calls another one, with names that the main graph uses too."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("tests", 1)]
    scale = helper.make_function("tests", "Scale", ["x"], ["y"], [constant_node("w"), helper.make_node("Mul", ["x", "w"], ["y"])], opsets[:1])
    scale.node[0].attribute[0].t.CopyFrom(tensor("w", floats(54, 8)))
    twice = helper.make_function("tests", "Twice", ["x"], ["y"], [helper.make_node("Scale", ["x"], ["w"], domain="tests"),
                                                                  helper.make_node("Scale", ["w"], ["y"], domain="tests")], opsets)
    nodes = [helper.make_node("Twice", ["x"], ["h"], domain="tests"), helper.make_node("MatMul", ["h", "w"], ["y"])]
    return model(nodes, [info("x", [1, 8])], [info("y", [1, 4])], [tensor("w", floats(55, 8, 4))], functions=[scale, twice],
                 extra_opsets=opsets[1:])


def opset23():
    nodes = [helper.make_node("RMSNormalization", ["x", "scale"], ["h"], axis=-1), helper.make_node("MatMul", ["h", "w"], ["y"])]
    made = one_weight(nodes, tensor("w", floats(56, 8, 4)), opset=23, more=[tensor("scale", floats(57, 8))])
    made.ir_version = 11
    return made


def sparse():
    """(model with a sparse initializer, the same with a dense one)"""
    dense = np.zeros((8, 4), np.float32)
    places = np.array([0, 3, 9, 17, 30], np.int64)
    dense.reshape(-1)[places] = floats(58, 5)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [info("x", [1, 8])], [info("y", [1, 4])], [])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(tensor("w", floats(58, 5)), tensor("w_indices", places), [8, 4]))
    return made, one_weight(nodes, tensor("w", dense))


def sparse_ext():
    values = tensor("sparse_w", floats(34, 5))
    indices = tensor("sparse_indices", np.array([0, 3, 9, 17, 30], np.int64))
    made = model([helper.make_node("MatMul", ["x", "sparse_w"], ["y"])], [info("x", [1, 8])], [info("y", [1, 4])], [])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [8, 4]))
    return made


def function_ext():
    function = helper.make_function("tests", "Project", ["a"], ["b"], [constant_node("function_w"), helper.make_node("MatMul", ["a", "w"], ["b"])],
                                    [helper.make_opsetid("", 17)])
    return model([helper.make_node("Project", ["x"], ["y"], domain="tests")], [info("x", [1, 8])], [info("y", [1, 4])], [],
                 functions=[function], extra_opsets=[helper.make_opsetid("tests", 1)])
