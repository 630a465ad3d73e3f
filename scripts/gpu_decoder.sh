#!/usr/bin/env bash
# Measures one token of a decoder of 1.1 billion parameters on the GPU at hand: how much of the memory's bandwidth its
# weights take, of 16 bits and of 4, in waves and as an rProgram. Weights of 4 bits are multiplied by values of float32
# (int4) and of bfloat16 (int4_bf16).
#
#   scripts/gpu_decoder.sh OUT
#
# OUT gets decoder.json (bench/results/h200-decoder.json) and logs. RAMMERC names the binary (default: built with go),
# ARCH the architecture (default: that of this machine's GPU), and MODEL another model of bench/models.py. HBM is the
# memory's bandwidth in bytes per second (default: an H200's). Each rProgram is verified for VERIFY seconds at most
# (default 120); the evaluator takes long for so many weights.
set -uo pipefail
mkdir -p "$1/log" "$1/models"
out=$1
source "$(dirname "$0")/gpu_common.sh"
model=${MODEL:-token_1b}
python3 "$root/bench/models.py" "$out/models" "$model" || exit 1
compiled() { # NAME PLAN FLAGS…
  local name=$1 plan=$2
  shift 2
  "$RAMMERC" compile "$out/models/$model.onnx" --target "$arch" --offline --plan "$plan" "$@" \
    -o "$out/lib_$name" --json >"$out/$name.compile.json" 2>"$out/log/$name.compile"
}
for plan in waves rprogram; do
  compiled "bf16.$plan" $plan --precision bf16 &
  compiled "int4.$plan" $plan --weights int4 &
  compiled "int4_bf16.$plan" $plan --weights int4 --precision bf16 &
done
wait
for form in bf16 int4 int4_bf16; do
  for plan in waves rprogram; do
    "$RAMMERC" bench "$out/lib_$form.$plan" --runs 100 --warm-up 20 --json >"$out/$form.$plan.bench.json" \
      2>"$out/log/$form.$plan.bench"
  done
done
for form in bf16 int4 int4_bf16; do
  timeout "${VERIFY:-120}" "$RAMMERC" verify "$out/lib_$form.rprogram" --model "$out/models/$model.onnx" --json \
    >"$out/$form.verify.json" 2>"$out/log/$form.verify"
done
python3 "$root/bench/decoder.py" "$out" "$model" "${HBM:-4.8e12}"
