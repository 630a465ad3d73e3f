#!/usr/bin/env bash
# Shows what a library says when something is missing, damaged or lost, and that contexts come and go without a leak
# (bench/robust.py). It needs a GPU and PyTorch.
#
#   scripts/gpu_robust.sh MODEL OUT
#
# MODEL is a small ONNX file with one input and one output. OUT gets robust.json. Variables of the environment:
#
#   STEPS   build, run, or both (the default); "run" takes what "build" left in OUT
#   CYCLES  how often contexts are created, run and destroyed; 10000 by default
set -uo pipefail
mkdir -p "$2/log"
model=$(realpath "$1") out=$2
source "$(dirname "$0")/gpu_common.sh"
steps=${STEPS:-build run}
other=sm_80
[ "$arch" = sm_80 ] && other=sm_90
if [[ " $steps " == *" build "* ]]; then
  for a in "$arch" "$other"; do
    "$RAMMERC" compile "$model" --name stencil --target "$a" --offline --emit lib -o "$out/$a" -q >"$out/log/$a" 2>&1 &
  done
  wait
  cc -O2 -std=gnu11 -I"$out/$arch" "$root/internal/systemtest/libraries/testdata/robust.c" -L"$out/$arch" -lstencil -lpthread \
    "-Wl,-rpath,$out/$arch" -o "$out/robust" || exit 1
fi
if [[ " $steps " == *" run "* ]]; then
  exec python3 "$root/bench/robust.py" "$out" "$out/$arch" "$out/$other" "$out/robust"
fi
