"""Protobuf as a tree of fields, and small changes of it that keep the lengths around right. diff_scan.py uses them."""

CHILDREN = {"Model": {7: "Graph", 20: "Training", 25: "Function"}, "Graph": {1: "Node", 5: "Tensor", 15: "Sparse"},
            "Node": {5: "Attribute"}, "Function": {7: "Node", 11: "Attribute"}, "Training": {1: "Graph", 2: "Graph"},
            "Attribute": {5: "Tensor", 10: "Tensor", 6: "Graph", 11: "Graph", 22: "Sparse", 23: "Sparse"},
            "Sparse": {1: "Tensor", 2: "Tensor"}, "Tensor": {13: "Entry"}, "Entry": {}}
NUMBERS = (0, 1, 2, 3, 8, 127, 128, 2**31 - 1, 2**31, 2**32 + 1, 2**63, 2**64 - 1, 2**64 + 1, 2**70 + 1)
TEXTS = (b"location", b"offset", b"length", b"EPContext", b"com.microsoft", b"w.bin", b"1", b"0", b"", b"\xff", b"embed_mode", b"a\0b")


def varint(value, extra=0):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(extra):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


class Field:
    """number, wire type, and a list of fields, a number or bytes; *_extra are needless bytes in the spelling."""

    def __init__(self, number, wire, value, kind=None):
        self.number, self.wire, self.value, self.kind = number, wire, value, kind
        self.tag_extra = self.length_extra = self.value_extra = self.length_error = 0

    def copy(self):
        new = Field(self.number, self.wire, [f.copy() for f in self.value] if isinstance(self.value, list) else self.value, self.kind)
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("value",)})
        return new

    def encode(self):
        head = varint(self.number << 3 | self.wire, self.tag_extra)
        if self.wire == 0:
            value = self.value if isinstance(self.value, int) else 1
            return head + varint(value, self.value_extra)
        body = b"".join(f.encode() for f in self.value) if isinstance(self.value, list) else \
            self.value if isinstance(self.value, bytes) else varint(self.value)
        if self.wire == 2:
            return head + varint(max(0, len(body) + self.length_error), self.length_extra) + body
        if self.wire == 3:
            return head + body + varint(self.number << 3 | 4)
        return head + (body + bytes(8))[:8 if self.wire == 1 else 4]


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def tree(data, kind):
    fields, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            fields.append(Field(number, wire, value))
        elif wire == 2:
            length, at = read_varint(data, at)
            body = data[at:at + length]
            inner = CHILDREN[kind].get(number)
            fields.append(Field(number, wire, tree(body, inner) if inner else body, inner))
            at += length
        else:
            size = 8 if wire == 1 else 4
            fields.append(Field(number, wire, data[at:at + size]))
            at += size
    return fields


def lists_of(fields):
    found = [fields]
    for field in fields:
        if isinstance(field.value, list):
            found += lists_of(field.value)
    return found


def mutate(fields, dice):
    places = [p for p in lists_of(fields) if p]
    here = dice.choice(places)
    index = dice.randrange(len(here))
    field = here[index]
    what = dice.randrange(14)
    if what == 0:
        here.insert(dice.randrange(len(here) + 1), field.copy())
    elif what == 1:
        del here[index]
    elif what == 2:
        dice.shuffle(here)
    elif what == 3:
        field.number = dice.choice((field.number ^ 1, dice.randrange(1, 26), 2**29 - 1, 0))
    elif what == 4:
        field.wire = dice.choice((0, 1, 2, 3, 5, 2, 0, 6))
    elif what == 5 and isinstance(field.value, int):
        field.value = dice.choice(NUMBERS)
    elif what == 6:
        setattr(field, dice.choice(("tag_extra", "length_extra", "value_extra")), dice.choice((1, 2, 3, 4, 5, 8, 9)))
    elif what == 7 and isinstance(field.value, list) and len(field.value) > 1:  # one message in two parts, which protobuf merges
        cut = dice.randrange(1, len(field.value))
        rest = Field(field.number, field.wire, field.value[cut:], field.kind)
        field.value = field.value[:cut]
        here.insert(dice.randrange(len(here) + 1), rest)
    elif what == 8:
        dice.choice(places).append(field.copy())
    elif what == 9 and isinstance(field.value, bytes):
        field.value = dice.choice(TEXTS)
    elif what == 10 and isinstance(field.value, bytes) and field.value:
        at = dice.randrange(len(field.value))
        field.value = field.value[:at] + bytes([dice.randrange(256)]) + field.value[at + 1:]
    elif what == 11:
        field.length_error = dice.choice((-1, 1, 5, 2**31, 2**32))
    elif what == 12:
        here[index] = Field(dice.randrange(1, 26), 2, [field], None)
    else:
        here.append(Field(14, 0, dice.choice((0, 1, 1, 2, 2**32 + 1))))


def twist_bytes(data, dice):
    data = bytearray(data)
    for _ in range(dice.randrange(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)
