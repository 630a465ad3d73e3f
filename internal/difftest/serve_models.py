"""Runs ONNX models: a request is the model, a JSON header of the inputs, and their bytes; each part has its length in front."""
import json
import struct
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
BRAIN = onnx.TensorProto.BFLOAT16


def receive():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    return sys.stdin.buffer.read(struct.unpack("<I", head)[0])


def send(data):
    sys.stdout.buffer.write(struct.pack("<I", len(data)))
    sys.stdout.buffer.write(data)


def compute(model, tensors, parts):
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {}
    for t, raw in zip(tensors, parts):
        if t["dtype"] == BRAIN:
            raise RuntimeError("bfloat16 inputs cannot be given")
        kind = onnx.helper.tensor_dtype_to_np_dtype(t["dtype"])
        feeds[t["name"]] = np.frombuffer(raw, dtype=kind).reshape(t["dims"] or [])
    outs = session.run(None, feeds)
    names = [o.name for o in session.get_outputs()]
    head = []
    for name, a in zip(names, outs):
        if a.dtype.kind not in "fiub":
            raise RuntimeError("an output has type %s" % a.dtype)
        head.append({"name": name, "dtype": int(onnx.helper.np_dtype_to_tensor_dtype(a.dtype)), "dims": list(a.shape)})
    return head, [np.ascontiguousarray(a).tobytes() for a in outs]


while True:
    model = receive()
    header = json.loads(receive())
    tensors = header["tensors"] or []
    parts = [receive() for _ in tensors]
    try:
        head, data = compute(model, tensors, parts)
        send(json.dumps({"tensors": head}).encode())
        for d in data:
            send(d)
    except Exception as e:  # the runtime's complaints are answers
        send(json.dumps({"tensors": [], "error": str(e) or type(e).__name__}).encode())
    sys.stdout.buffer.flush()
