#!/usr/bin/env bash
# The machine code of models, without a GPU: its size, what ptxas spills, and how long nvcc takes.
#
#   scripts/code_sizes.sh OUT MODEL.onnx…
#
# OUT gets code.json, and what compile prints of each model in each of PRECISIONS (fp32, tf32 and fp16) in rows. RAMMERC
# names the binary (default: built with go), ARCH the architecture (sm_90), and JOBS how many models are compiled at a time
# (one for every two processors, since nvcc compiles the kernels of a model side by side).
set -uo pipefail
mkdir -p "$1/rows"
out=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
arch=${ARCH:-sm_90}
export RAMMERC out arch

measure() { # PRECISION MODEL.onnx
  local row
  row=$out/rows/$(basename "$2" .onnx).$1
  "$RAMMERC" compile "$2" --target "$arch" --precision "$1" --offline --emit lib -q --json -o "$row.lib" >"$row.json" 2>"$row.err" ||
    echo "FAILED: $row: $(tail -n 1 "$row.err")"
  rm -rf "$row.lib"
}
export -f measure
for p in ${PRECISIONS:-fp32 tf32 fp16}; do
  printf '%s\n' "$@" | xargs -P "${JOBS:-$((($(nproc) + 1) / 2))}" -I{} bash -c "measure $p {}"
done
python3 "$root/bench/code_sizes.py" "$out"
