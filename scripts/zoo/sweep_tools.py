"""Tools that rewrite ONNX models: ONNX Runtime's optimiser and quantisers, and the conversion to float16."""
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization as q


def optimised(base, path, how):
    """As ONNX Runtime saves a model after the optimisations of a level."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = {
        "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
        "layout": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
        "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    }[how[0]]
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(base), options, providers=["CPUExecutionProvider"])


class Samples(q.CalibrationDataReader):
    """Random inputs, by which the ranges of activations are found."""

    def __init__(self, path, count=2):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        random = np.random.default_rng(0)
        self.samples = iter([{i.name: draw(random, i) for i in session.get_inputs()} for _ in range(count)])

    def get_next(self):
        return next(self.samples, None)


def draw(random, i):
    shape = [n if isinstance(n, int) else 1 for n in i.shape]
    if "int" in i.type:
        return (random.integers(0, 2, shape) if "mask" in i.name else random.integers(3, 100, shape)).astype("i8")
    return random.standard_normal(shape).astype("f4")


TYPES = {"u8": q.QuantType.QUInt8, "s8": q.QuantType.QInt8, "u16": q.QuantType.QUInt16, "s16": q.QuantType.QInt16,
         "u4": q.QuantType.QUInt4, "s4": q.QuantType.QInt4, "f8": q.QuantType.QFLOAT8E4M3FN}


def quantised(base, path, how):
    """MODE is dynamic or static; then come the types of activations and weights, qdq or qoperator, and options."""
    ready = path.with_name("ready.onnx")
    try:
        q.quant_pre_process(str(base), str(ready), skip_symbolic_shape=True)
    except Exception:  # its optimiser refuses some models that ONNX Runtime itself runs
        q.quant_pre_process(str(base), str(ready), skip_symbolic_shape=True, skip_optimization=True)
    mode, words = how[0], how[1:]
    options = {"per_channel": "channels" in words, "reduce_range": "reduced" in words}
    types = [TYPES[w] for w in words if w in TYPES]
    if mode == "dynamic":
        q.quantize_dynamic(str(ready), str(path), weight_type=types[0], **options)
        return
    extra = {}
    if "symmetric" in words:
        extra.update(ActivationSymmetric=True, WeightSymmetric=True)
    if any(t in (q.QuantType.QUInt16, q.QuantType.QInt16, q.QuantType.QUInt4, q.QuantType.QInt4) for t in types):
        extra["UseQDQContribOps"] = True
    method = q.CalibrationMethod.Distribution if "f8" in words else q.CalibrationMethod.MinMax
    for name in ("Entropy", "Percentile"):
        if name.lower() in words:
            method = q.CalibrationMethod[name]
    q.quantize_static(str(ready), str(path), Samples(ready), activation_type=types[0], weight_type=types[1],
                      quant_format=q.QuantFormat.QOperator if "qoperator" in words else q.QuantFormat.QDQ,
                      calibrate_method=method, extra_options=extra, **options)


def few_bits(base, path, how):
    """MatMulNBits of 4 or 8 bits, or the same as DequantizeLinear."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    config = DefaultWeightOnlyQuantConfig(
        block_size=32, is_symmetric="symmetric" in how, bits=int(how[0]), accuracy_level=4 if "level4" in how else None,
        quant_format=q.QuantFormat.QDQ if "qdq" in how else q.QuantFormat.QOperator,
        op_types_to_quantize=("MatMul", "Gather") if "gather" in how else None)
    work = MatMulNBitsQuantizer(onnx.load(str(base)), algo_config=config)
    work.process()
    work.model.save_model_to_file(str(path), False)


def half(base, path, how):
    """Converted to float16, by onnxconverter-common or by ONNX Runtime's own copy of it."""
    if "ort" in how:
        from onnxruntime.transformers.float16 import convert_float_to_float16
    else:
        from onnxconverter_common.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(str(base)), keep_io_types="keep" in how), str(path))


def flags(tool, how):
    """What rammerc has to be told of a model: how many channels the blocks of this machine's CPU have."""
    return ["--channel-block", str(block())] if tool == "ort" and how[-1] in ("layout", "all") else []


def block():
    """ONNX Runtime's blocks are as wide as a register of AVX-512, or half of that."""
    cpu = pathlib.Path("/proc/cpuinfo")
    return 16 if not cpu.exists() or "avx512f" in cpu.read_text() or "Features" in cpu.read_text() else 8


TOOLS = {"ort": optimised, "quantize": quantised, "nbits": few_bits, "half": half}
