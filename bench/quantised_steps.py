"""Compares quantised models with ONNX Runtime, in quantisation steps.

    python3 quantised_steps.py RAMMERC OUT.json [NAME…]     NAME as in quantised.py, but for models of float32
    python3 quantised_steps.py --bundle DIR NAME…           the whole models, with NAME.npz: inputs and what comes out
    python3 quantised_steps.py --cut DIR NAME…              the models layer by layer, for `rammerc verify --random-max 256`

All codes of activations become outputs of the model: results of QuantizeLinear and DynamicQuantizeLinear, and of
operators that work on codes. So the codes of all layers are compared and not only what comes out at the end. This is
done in two ways:

whole           The model as it is. A code that differs makes other codes in the layers behind, so that differences grow.
layer_by_layer  Whoever reads codes reads an input of the model, which is given the codes that ONNX Runtime has there. So
                each layer is compared by itself.

The engine is rammerc's evaluator, with which `rammerc verify` compares GPUs, or what ENGINE of the environment names:
emu or gpu, for which models are compiled. "equal" says of each model whether every layer by itself is within one step of
one of ONNX Runtime's two ways, and the script fails if that is false for any. ONNX Runtime computes everything twice: with
its fusions, which multiply integers, and node by node in float32. How far these two are apart shows what is right.

Needs the packages onnx and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import quantised

BEHIND = "_given"
MAKERS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")
ENGINE = os.environ.get("ENGINE", "eval")


def expose(model):
    """Makes the codes of all activations outputs of the model, and names them in order."""
    codes = [n.output[0] for n in model.graph.node if n.op_type in MAKERS]
    known = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    model.graph.output.extend(known[name] for name in codes)
    return codes


def cut(model, codes):
    """Makes everything that reads codes read inputs of the model, called as they are with BEHIND after that."""
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name in codes:
                node.input[i] = name + BEHIND
    for v in list(model.graph.output):
        if v.name in codes:
            v = onnx.ValueInfoProto.FromString(v.SerializeToString())
            v.name += BEHIND
            model.graph.input.append(v)


def onnx_runtime(path, inputs, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs)))


def evaluator(rammerc, path, inputs, folder):
    command = [rammerc, "run", path, "--engine", ENGINE, "-q", "-o", folder]
    for name, x in inputs.items():
        np.save(os.path.join(folder, name + ".input.npy"), x)
        command += ["--input", f"{name}={os.path.join(folder, name)}.input.npy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    return {f[:-4]: np.load(os.path.join(folder, f)) for f in os.listdir(folder) if not f.endswith(".input.npy")}


def steps(got, want, names):
    """How codes differ: the largest difference, and the part that does, over all tensors and in the worst one."""
    most, parts, count, differing = 0, [], 0, 0
    for name in names:
        d = np.abs(got[name].astype(int) - want[name].astype(int))
        most, count, differing = max(most, int(d.max())), count + d.size, differing + int((d > 0).sum())
        parts.append(float((d > 0).mean()))
    return {"most_steps": most, "first_that_differs": next((i for i, p in enumerate(parts) if p), None),
            "differing": differing / count, "differing_in_worst": max(parts), "tensors": len(names), "codes": count}


def compared(rammerc, model, inputs, codes, floats):
    """How the evaluator and ONNX Runtime's two ways differ, and what the latter got with its fusions."""
    with tempfile.TemporaryDirectory() as folder:
        path, ours = os.path.join(folder, "model.onnx"), os.path.join(folder, "ours")
        onnx.save(model, path)
        os.mkdir(ours)
        level = onnxruntime.GraphOptimizationLevel
        fused, plain = (onnx_runtime(path, inputs, x) for x in (level.ORT_ENABLE_ALL, level.ORT_DISABLE_ALL))
        got = evaluator(rammerc, path, inputs, ours)
    row = {}
    for name, x, y in (("ours_against_fused", got, fused), ("ours_against_plain", got, plain),
                       ("fused_against_plain", fused, plain)):
        row[name] = steps(x, y, codes)
        row[name]["relative_l2"] = max(float(np.linalg.norm(x[n] - y[n]) / np.linalg.norm(y[n])) for n in floats)
    return row, fused


def whole_model(name):
    """A model, its inputs, and which outputs are codes and which are not."""
    model = onnx.load_from_string(quantised.MODELS[name]())
    floats, random, inputs = [o.name for o in model.graph.output], np.random.default_rng(1), {}
    for v in model.graph.input:
        shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
        inputs[v.name] = random.standard_normal(shape).astype(np.float32)
    return model, inputs, expose(model), floats


def write_cut(folder, names):
    for name in names:
        model, _, codes, _ = whole_model(name)
        cut(model, set(codes))
        onnx.save(model, os.path.join(folder, name + "_cut.onnx"))


def bundle(folder, names):
    for name in names:
        path = os.path.join(folder, name)
        model, inputs, _, _ = whole_model(name)
        onnx.save(model, path + ".onnx")
        out = onnx_runtime(path + ".onnx", inputs, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
        np.savez_compressed(path + ".npz", **inputs, **out)


def compare(rammerc, name):
    model, inputs, codes, floats = whole_model(name)
    whole, known = compared(rammerc, model, inputs, codes, floats)
    cut(model, set(codes))
    given = {c + BEHIND: known[c] for c in codes}
    given |= {v.name: inputs[v.name] for v in model.graph.input if v.name in inputs}
    by_layer, _ = compared(rammerc, model, given, codes, floats)
    most = min(by_layer[way]["most_steps"] for way in ("ours_against_fused", "ours_against_plain"))
    return {"equal": most <= 1, "whole": whole, "layer_by_layer": by_layer}


def main():
    if sys.argv[1] == "--bundle":
        return bundle(sys.argv[2], sys.argv[3:])
    if sys.argv[1] == "--cut":
        return write_cut(sys.argv[2], sys.argv[3:])
    rammerc, out, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = names or [name for name in quantised.MODELS if "float" not in name and "_b8" not in name]
    result = {"schema": "rammerc/quantised-steps/v2", "onnxruntime": onnxruntime.__version__, "engine": ENGINE,
              "models": {name: compare(rammerc, name) for name in names}}
    with open(out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    if wrong := [name for name, row in result["models"].items() if not row["equal"]]:
        sys.exit(f"more than one step apart: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
