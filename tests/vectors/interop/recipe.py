"""docs/format.md, "Recipe": the original model from the split one. ValueError for a recipe that a reader must refuse."""

import struct


def take(source, start, length):
    if not 0 < length <= len(source) - start:
        raise ValueError("a range of a recipe")
    return source[start:start + length]


def follow(recipe, model, weights):
    out, at, passed = [], 0, 0
    while at < len(recipe):
        kind, numbers = recipe[at:at + 1], 2 if recipe[at:at + 1] == b"W" else 1
        fields = struct.unpack(">%dQ" % numbers, take(recipe, at + 1, 8 * numbers))
        at += 1 + 8 * numbers
        if kind == b"M":
            out.append(take(model, passed, fields[0]))
            passed += fields[0]
        elif kind == b"S":
            take(model, passed, fields[0])
            passed += fields[0]
        elif kind == b"L":
            out.append(take(recipe, at, fields[0]))
            at += fields[0]
        elif kind == b"W":
            out.append(take(weights, fields[0], fields[1]))
        else:
            raise ValueError("a record of a recipe")
    if passed != len(model):
        raise ValueError("what a recipe leaves over")
    return b"".join(out)
