"""What open_bundle.py and make_bundle.py share: docs/format.md in Python, over PyPI `cryptography` and the standard library.

Nothing of ortcrypt's own code is used: this is the second implementation that keeps the document honest.
"""

import hashlib

from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor

FORMAT = b"ortcrypt/1\n"
CHUNK = 16384
FIRST_PIECE = 56 + 64 * (CHUNK + 16)
PIECE = 64 * (CHUNK + 16)
KEY_LINE_LEN = 121
KEY_HEAD = b'{"format":"ortcrypt/1","bundle":"'
KEY_MIDDLE = b'","key":"'
KEY_TAIL = b'"}\n'

DTYPES = [None, "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double", "uint32",
          "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
          "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2"]
BITS = {"uint2": 2, "int2": 2, "uint4": 4, "int4": 4, "float4e2m1": 4, "uint8": 8, "int8": 8, "bool": 8, "float8e4m3fn": 8,
        "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8, "uint16": 16, "int16": 16, "float16": 16,
        "bfloat16": 16, "float": 32, "int32": 32, "uint32": 32, "double": 64, "int64": 64, "uint64": 64, "complex64": 64,
        "complex128": 128}


def manifest_context(bundle_id):
    return b"ortcrypt/1 manifest\x00" + bundle_id


def asset_context(bundle_id, asset_id):
    return b"ortcrypt/1 asset\x00" + bundle_id + asset_id


def sealed_len(size):
    return 56 + size + 16 * (size // CHUNK + 1)


def piece_count(size):
    return (size // CHUNK + 1 + 63) // 64


def seal(key, context, plain):
    encryptor = Cobblestone256Encryptor(key, context)
    return encryptor.update(plain) + encryptor.finalize()


def unseal(key, context, sealed):
    """Raises cryptography.exceptions.InvalidTag for anything that is not authentic."""
    decryptor = Cobblestone256Decryptor(key, context)
    plain = decryptor.update(sealed)
    return plain + decryptor.finalize()


def leaves_of(sealed):
    ends = [0] + list(range(FIRST_PIECE, len(sealed), PIECE)) + [len(sealed)]
    return [hashlib.sha256(sealed[start:end]).digest() for start, end in zip(ends, ends[1:])]


def object_name(length, leaves):
    return hashlib.sha256(b"ortcrypt/1 object\x00" + length.to_bytes(8, "big") + b"".join(leaves)).hexdigest()


def tensor_len(dtype, shape):
    bits = BITS[dtype]
    for dimension in shape:
        bits *= dimension
    return (bits + 7) // 8
