#!/usr/bin/env bash
# Quantised models beside the same networks in fp16 on the GPU at hand, and how far their results are from those of the
# evaluator.
#
#   scripts/gpu_int8.sh OUT [NAME…]
#
# OUT gets int8.json, the models, libraries and logs. NAME are pairs QUANTISED:FLOAT of bench/quantised.py; by default
# ResNet-50 and BERT with one and with eight images or sequences, and a BERT that is quantised dynamically. RAMMERC names
# the binary (default: built with go), and ARCH the architecture (default: that of this machine's GPU). Every library is
# timed ROUNDS times (3), in turns with all others.
set -uo pipefail
mkdir -p "$1/lib" "$1/rows" "$1/models"
out=$1
shift
pairs=("$@")
[ ${#pairs[@]} -gt 0 ] || pairs=(resnet50_qdq:resnet50_float resnet50_qdq_b8:resnet50_float_b8 bert_qdq:bert_float
  bert_qdq_b8:bert_float_b8 bert_dynamic:bert_float)
source "$(dirname "$0")/gpu_common.sh"
mapfile -t models < <(printf '%s\n' "${pairs[@]}" | tr : '\n' | sort -u)
(cd "$root/bench" && python3 quantised.py "$out/models" "${models[@]}") || exit 1

step() { # STEP NAME COMMAND…: its JSON and its log are in rows
  local row=$out/rows/$2.$1
  timeout 300 "$RAMMERC" "${@:3}" --json >"$row.json" 2>"$row.err" || echo "$1 FAILED: $2: $(tail -n 1 "$row.err")"
}
build() { # NAME
  step compile "$1" compile "$out/models/$1.onnx" --target "$arch" --precision fp16 --offline --emit lib \
    -o "$out/lib/$1"
}
check() { # NAME
  step verify "$1" verify "$out/lib/$1" --model "$out/models/$1.onnx"
}
export -f step build check
printf '%s\n' "${models[@]}" | xargs -P "$(nproc)" -I{} bash -c 'build {}'
printf '%s\n' "${models[@]}" | xargs -P 4 -I{} bash -c 'check {}'
for ((i = 0; i < ${ROUNDS:-3}; i++)); do
  for n in "${models[@]}"; do
    step "bench.$i" "$n" bench "$out/lib/$n" --runs "${RUNS:-200}"
  done
done
python3 "$root/bench/int8.py" "$out" "${pairs[@]}"
