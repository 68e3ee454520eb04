#!/usr/bin/env python3
"""Writes NAME_fixed.onnx beside NAME.onnx of the PP-OCR models: every dimension a number, so that an EP that needs that takes them whole.

    fix_shapes.py FOLDER

Uses what ONNX Runtime's own tools do for the same purpose (onnxruntime.tools.onnx_model_utils).
"""

import os
import sys

import onnx
from onnxruntime.tools import onnx_model_utils

SHAPES = {"ppocr_rec": [1, 3, 48, 320], "ppocr_det": [1, 3, 320, 320], "ppocr_cls": [1, 3, 48, 192]}


def fix(source, target, shape):
    model = onnx.load(source)
    value = model.graph.input[0]
    for index, dimension in enumerate(value.type.tensor_type.shape.dim):
        if not dimension.HasField("dim_value") or dimension.dim_value < 0:
            dimension.dim_param = "fixed_" + str(index)  # two dimensions may share the name "?"
    onnx_model_utils.make_input_shape_fixed(model.graph, value.name, shape)
    onnx_model_utils.fix_output_shapes(model)
    onnx.save(model, target + ".new")
    os.rename(target + ".new", target)


def main():
    folder = sys.argv[1]
    for name, shape in SHAPES.items():
        fix(os.path.join(folder, name + ".onnx"), os.path.join(folder, name + "_fixed.onnx"), shape)


if __name__ == "__main__":
    main()
