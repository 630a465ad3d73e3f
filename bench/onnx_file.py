"""Writes small ONNX files without the package onnx: what a file needs of ONNX's protobuf messages, field by field."""
import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}  # TensorProto.DataType


def _number(field, value):
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def _bytes(field, data):
    if isinstance(data, str):
        data = data.encode()
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name, value):
    """AttributeProto of a number, a list of integers, or a string."""
    if isinstance(value, float):
        return _bytes(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value) + _number(20, 2)
    if isinstance(value, str):
        return _bytes(1, name) + _bytes(4, value) + _number(20, 3)
    return _bytes(1, name) + b"".join(_number(8, v) for v in value) + _number(20, 7)


def node(op, inputs, outputs, **attributes):
    return (b"".join(_bytes(1, n) for n in inputs) + b"".join(_bytes(2, n) for n in outputs) + _bytes(4, op) +
            b"".join(_bytes(5, _attribute(n, v)) for n, v in attributes.items()))


def constant(name, array, dtype="float32"):
    """An initializer."""
    array = np.ascontiguousarray(array, dtype=dtype)
    return (b"".join(_number(1, d) for d in array.shape) + _number(2, TYPES[dtype]) + _bytes(8, name) +
            _bytes(9, array.tobytes()))


def value(name, *dims, dtype="float32"):
    """An input or output. Dims are numbers, or symbols and sums of these."""
    shape = b"".join(_bytes(1, _bytes(2, d) if isinstance(d, str) else _number(1, d)) for d in dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, TYPES[dtype]) + _bytes(2, shape)))


def model(name, nodes, constants, inputs, outputs, opset=17):
    """The bytes of a file."""
    graph = (b"".join(_bytes(1, n) for n in nodes) + _bytes(2, name) + b"".join(_bytes(5, c) for c in constants) +
             b"".join(_bytes(11, i) for i in inputs) + b"".join(_bytes(12, o) for o in outputs))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, opset))
