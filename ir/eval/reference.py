"""Runs a function that says what an operator of a user computes.

Standard input has a line of JSON and the elements of the inputs, standard output a line of JSON and those of the
outputs. Numbers of bfloat16, which numpy does not have, come and go as float32.
"""

import sys

sys.path[:] = [p for p in sys.path if p]  # a package is not to come from the current folder, which may be a stranger's

import importlib.util
import json
import os

try:
    import numpy
except ImportError:
    sys.exit(3)


def element(name):
    return numpy.uint16 if name == "bfloat16" else numpy.dtype(name)


def read(port):
    dtype = numpy.dtype(element(port["type"]))
    count = 1
    for n in port["dims"]:
        count *= n
    a = numpy.frombuffer(sys.stdin.buffer.read(count * dtype.itemsize), dtype).reshape(port["dims"])
    if port["type"] == "bfloat16":
        return (a.astype(numpy.uint32) << 16).view(numpy.float32)
    return a.copy()


def rounded(a):
    """float32 as bfloat16, to nearest even."""
    bits = numpy.ascontiguousarray(a, numpy.float32).view(numpy.uint32)
    up = (bits >> 16 & 1) + 0x7FFF
    return numpy.where(numpy.isnan(a), 0x7FC0, bits + up >> 16).astype(numpy.uint16)


def main():
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the function prints is for people
    call = json.loads(sys.stdin.buffer.readline())
    inputs = [read(port) for port in call["inputs"]]
    sys.path.insert(0, os.path.dirname(os.path.abspath(call["file"])))
    spec = importlib.util.spec_from_file_location("reference", call["file"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = getattr(module, call["function"])(*inputs, **call["attributes"])
    if not isinstance(results, (tuple, list)):
        results = [results]
    arrays = []
    for i, a in enumerate(results):
        want = call["types"][i] if i < len(call["types"]) else "float32"
        a = numpy.asarray(a)
        a = rounded(a) if want == "bfloat16" else numpy.ascontiguousarray(a.astype(element(want), copy=False))
        arrays.append(a)
    answers.write((json.dumps([list(numpy.shape(r)) for r in results]) + "\n").encode())
    for a in arrays:
        answers.write(a.tobytes())
    answers.close()


main()
