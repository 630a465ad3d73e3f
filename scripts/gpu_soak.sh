#!/usr/bin/env bash
# Compiles, runs and verifies models on the GPU of this machine while processes are killed at random (scripts/soak).
#
#   scripts/gpu_soak.sh OUT MODEL.onnx...
#
# OUT gets soak.json and the log. The exit status is that of soak: 1 when something half written or left was found, 3 when
# the machine had no memory or device for it. Variables of the environment:
#
#   RAMMERC, SOAK  the binaries; by default they are built with go
#   SECONDS_SOAK   after so many seconds no further round begins (default 500); the end of a round takes half a minute
#   ROUND          length of a round (default 2m)
#   WORKERS        commands at the same time (default 4)
#   COMMIT         of the binaries (default: of this tree)
#   ARCH=emu       tries the script where there is no GPU
set -uo pipefail
mkdir -p "$1"
out=$1
shift
source "$(dirname "$0")/gpu_common.sh"
if [ -z "${SOAK:-}" ]; then
  SOAK=$out/soak
  (cd "$root" && go build -o "$SOAK" ./scripts/soak) || exit 1
fi
dir=$(mktemp -d)
"$SOAK" -rammerc "$RAMMERC" -target "$arch" -dir "$dir/soak-work" -for "${SECONDS_SOAK:-500}s" -round "${ROUND:-2m}" \
  -workers "${WORKERS:-4}" "$@" 2>&1 | tee "$out/soak.log"
status=${PIPESTATUS[0]}
if [ "$status" = 0 ]; then rm -rf "$dir"; fi
COMMIT=${COMMIT:-$(git -C "$root" rev-parse HEAD)} python3 - "$out" "$arch" "$status" <<'PYTHON'
import json, os, pathlib, subprocess, sys

out, arch, status = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
lines = (out / "soak.log").read_text(errors="replace").splitlines()
counts = [json.loads(line) for line in lines if line.startswith('{"seconds"')]
try:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
except (OSError, subprocess.SubprocessError):
    gpu, driver = "none", "none"
try:
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout.strip().splitlines()[-1]
except (OSError, IndexError):
    nvcc = "none"
result = {
    "schema": "rammerc/soak/v1", "gpu": gpu, "driver": driver, "nvcc": nvcc, "commit": os.environ["COMMIT"],
    "target": arch, "status": status, "ok": status == 0, **(counts[-1] if counts else {}),
    "problems": [line for line in lines if line.startswith("soak: ") and ("FAILED" in line or "NOT JUDGED" in line)],
}
(out / "soak.json").write_text(json.dumps(result, indent=1) + "\n")
PYTHON
exit "$status"
