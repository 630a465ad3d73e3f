#!/usr/bin/env bash
# A general program beside programs that are compiled for exactly one extent, on the GPU at hand.
#
#   scripts/gpu_extents.sh MODEL OUT
#
# MODEL is an .onnx file whose dims are called batch and seq, with its weights. OUT gets extents.json, the libraries and
# logs. One library is compiled for seq=1..512 and verified at every extent; one more for each extent that is timed.
#
# Variables of the environment, beside RAMMERC and ARCH: EXTENTS, "16 64 200 333 512"; PRECISIONS, "fp32 fp16"; STEPS,
# "build time", of which build needs no GPU; ROUNDS (3), in each of which all libraries are timed.
set -uo pipefail
mkdir -p "$2/lib" "$2/rows"
model=$(realpath "$1") out=$2
source "$(dirname "$0")/gpu_common.sh"
export model
read -ra extents <<<"${EXTENTS:-16 64 200 333 512}"
read -ra precisions <<<"${PRECISIONS:-fp32 fp16}"

step() { # NAME COMMAND…: its JSON and its log are in rows
  local row=$out/rows/$1
  timeout 200 "$RAMMERC" "${@:2}" --json >"$row.json" 2>"$row.err" || echo "FAILED: $1: $(tail -n 1 "$row.err")"
}
build() { # PRECISION NAME RANGE
  step "$2.$1.compile" compile "$model" --name model --precision "$1" --target "$arch" --offline --emit lib \
    --dim batch=1 --dim "seq=$3" -o "$out/lib/$2.$1"
}
export -f step build

if [[ " ${STEPS:-build time} " == *" build "* ]]; then
  for p in "${precisions[@]}"; do
    echo "$p general 1..512"
    for n in "${extents[@]}"; do echo "$p exact$n $n"; done
  done | xargs -P "$(nproc)" -L 1 bash -c 'build "$@"' _
fi
[[ " ${STEPS:-build time} " == *" time "* ]] || exit 0
for ((i = 0; i < ${ROUNDS:-3}; i++)); do
  for p in "${precisions[@]}"; do
    for n in "${extents[@]}"; do
      step "exact$n.$p.$n.bench.$i" bench "$out/lib/exact$n.$p" --runs "${RUNS:-200}"
      step "general.$p.$n.bench.$i" bench "$out/lib/general.$p" --dim "seq=$n" --runs "${RUNS:-200}"
    done
  done
done
for p in "${precisions[@]}"; do
  for n in "${extents[@]}"; do
    step "general.$p.$n.verify" verify "$out/lib/general.$p" --model "$model" --dim "seq=$n"
  done
done
python3 "$root/bench/extents.py" "$out" "$(basename "$model" .onnx)" "${precisions[*]}" "${extents[*]}"
