"""What a library says when something is missing, damaged or lost, on a GPU with PyTorch.

    python3 robust.py OUT LIBDIR OTHERDIR PROGRAM

LIBDIR is a library for the GPU at hand and OTHERDIR one of the same name for another architecture. PROGRAM is
codegen/testdata/robust.c, linked with LIBDIR. OUT gets robust.json. Each case runs in a process of its own, since some
leave the device in no good state.
"""
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from collect import made_with


def module(folder):
    path, = glob.glob(f"{folder}/python/*.py")
    spec = importlib.util.spec_from_file_location("library", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def run(m):
    return m([np.ones(t.shape, t.dtype) for t in m.inputs])[0]


def status(make):
    """The status and the message of what make raises."""
    try:
        make()
    except Exception as e:
        return getattr(e, "status", -1), str(e)
    return 0, ""


def out_of_memory(folder):
    import torch
    lib = module(folder)
    with lib.Model() as m:
        want = run(m)
    free, _ = torch.cuda.mem_get_info()
    taken, size = [], free
    while size > 1 << 16:  # in ever smaller pieces, so that nothing is left
        try:
            taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    found = status(lib.Model)
    taken.clear()
    torch.cuda.empty_cache()
    with lib.Model() as m:
        again = run(m)
    return *found, bool(np.array_equal(want, again))


def leak(folder):
    import torch
    lib = module(folder)
    free = []
    for i in range(300):
        with lib.Model() as m:
            run(m)
        if i in (20, 299):
            free.append(torch.cuda.mem_get_info()[0])
    return 0, f"{(free[0] - free[1]) >> 10} KiB of device memory less after 279 cycles", free[0] - free[1] <= 2 << 20


def device_lost(folder):
    import torch
    lib = module(folder)
    m = lib.Model()
    run(m)
    try:
        torch.zeros(3, device="cuda")[torch.tensor([10], device="cuda")].sum().item()  # an assertion of PyTorch's kernel
    except Exception:
        pass
    code, text = status(lambda: run(m))
    closed, _ = status(m.close)
    return code, text, closed == 0


def no_device(folder):
    return *status(module(folder).Model), True


def damaged(folder):
    with tempfile.TemporaryDirectory() as tmp:
        copy = shutil.copytree(folder, tmp + "/lib")
        path, = glob.glob(copy + "/*.weights")
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([byte[0] ^ 1]))
        return *status(module(copy).Model), True


def missing(folder):
    with tempfile.TemporaryDirectory() as tmp:
        copy = shutil.copytree(folder, tmp + "/lib")
        os.remove(glob.glob(copy + "/*.weights")[0])
        return *status(module(copy).Model), True


CASES = {  # the status that is wanted, words of the message, and which library
    "out_of_memory": (5, "MiB are free"), "leak": (0, ""), "device_lost": (10, ""), "no_device": (11, "no CUDA device"),
    "wrong_gpu": (4, "compute capability"), "damaged": (3, ""), "missing": (2, ".weights"),
}


def main():
    if sys.argv[1] == "--case":
        name, folder = sys.argv[2:]
        print(json.dumps(globals().get(name, no_device)(folder)))
        return
    out, folder, other, program = sys.argv[1:]
    rows = []
    for name, (want, words) in CASES.items():
        env = dict(os.environ, **({"CUDA_VISIBLE_DEVICES": ""} if name == "no_device" else {}))
        done = subprocess.run([sys.executable, __file__, "--case", name, other if name == "wrong_gpu" else folder], env=env,
                              capture_output=True, text=True, timeout=60)
        lines = done.stdout.strip().splitlines()
        code, text, fine = json.loads(lines[-1]) if done.returncode == 0 and lines else (-1, done.stderr[-600:], False)
        rows.append({"case": name, "status": code, "message": text, "ok": bool(fine and code == want and words in text)})
        print(json.dumps(rows[-1]), flush=True)
    done = subprocess.run([program, os.environ.get("CYCLES", "10000")], capture_output=True, text=True)
    rows.append({"case": "cycles", "status": done.returncode, "message": done.stderr.strip() + "; " + done.stdout.strip(),
                 "ok": done.returncode == 0 and done.stdout.endswith("0 failures\n")})
    print(json.dumps(rows[-1]), flush=True)
    result = {"schema": "rammerc/robust/v1", **made_with(), "cases": rows, "ok": all(r["ok"] for r in rows)}
    with open(os.path.join(out, "robust.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    sys.exit(0 if result["ok"] else 1)


main()
