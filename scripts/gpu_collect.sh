#!/usr/bin/env bash
# Measures the rTasks of models on the GPU at hand, and writes the database that ships with rammerc.
#
#   scripts/gpu_collect.sh MODELS OUT [MODEL…]
#
# MODELS holds X.onnx files with their weights; those that bench/peers.py knows and that are not there are exported from
# PyTorch. OUT gets measured.jsonl, what is in it compressed (h200.jsonl.gz or the like, for profiler/db/shipped),
# predictions.json, a table of predicted and measured latencies, and logs. Whatever fails or is not done in time costs
# its own lines only; started again with the same OUT the script goes on.
#
# RAMMERC names the binary (default: built with go). PRECISIONS are measured one after another (default: tf32 fp32). The
# programs that measure are built first, for all models together, which takes no time on the GPU; STEPS=build stops then,
# and the script goes on from there when it is started again. LIMIT is how many seconds measuring may take in all,
# BUILD_LIMIT how many building may take for each precision. PREDICT=0 leaves out the table of predictions.
set -uo pipefail
models=$1 out=$2
shift 2
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(squeezenet1_1 resnet50 bert_l4_s32 vit_tiny_patch16_224 googlenet resnet18
  mobilenet_v3_small efficientnet_b0 inception_v3 resnext29_16x64d nasnet_cifar lstm_tc seq2seq deepspeech2 gpt2_l2 alexnet)
mkdir -p "$out/log" "$out/models" "$out/lib" "$out/rows"
source "$(dirname "$0")/gpu_common.sh"
export RAMMER_CACHE=$out/measured.jsonl
LIMIT=${LIMIT:-120}
STARTED=$(date +%s)

export_missing "${names[@]}"

collect() { # PRECISION FLAG…: the candidates of all models
  local p=$1 files=() n
  shift
  for n in "${names[@]}"; do [ -f "$(model "$n")" ] && [ -z "$(dims "$n")" ] && files+=("$(model "$n")"); done
  "$RAMMERC" collect "${files[@]}" --precision "$p" --built "$out/built" --json "$@"
}

predict() { # PRECISION NAME: builds what the costs choose, from what is measured
  # shellcheck disable=SC2046
  timeout 120 "$RAMMERC" compile "$(model "$2")" $(dims "$2") --precision "$1" --tries 1 --profile-budget 0 --emit all \
    -o "$out/lib/$2.$1" --json >"$out/rows/$2.$1.compile.json" 2>"$out/log/$2.$1.compile" ||
    echo "FAILED: $2 $1: $(tail -n 1 "$out/log/$2.$1.compile")"
}
export -f predict

for p in ${PRECISIONS:-tf32 fp32}; do
  collect "$p" --build-only --budget "${BUILD_LIMIT:-200}s" >/dev/null 2>"$out/log/build.$p" || tail -n 1 "$out/log/build.$p"
  echo "== built for $p: $(($(date +%s) - STARTED)) s"
done
[ "${STEPS:-all}" = build ] && exit 0
STARTED=$(date +%s)
for p in ${PRECISIONS:-tf32 fp32}; do
  left=$((LIMIT - $(date +%s) + STARTED))
  [ "$left" -ge 5 ] || { echo "no time left for $p"; continue; }
  collect "$p" --budget "${left}s" >"$out/rows/collect.$p.json" 2>"$out/log/collect.$p" ||
    echo "FAILED: $p: $(tail -n 1 "$out/log/collect.$p")"
  echo "$p at $(($(date +%s) - STARTED)) s: $(grep '^  collect' "$out/log/collect.$p")"
done
product=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
file=$out/$(echo "${product#NVIDIA }" | tr 'A-Z ' 'a-z_').jsonl.gz
rm -f "$file"
"$RAMMERC" cache export "$file" --gpu "$product"
"$RAMMERC" cache ls
"$RAMMERC" cache show --json 2>/dev/null | python3 -c '
import collections, json, sys
for text, n in collections.Counter(e["problem"] for e in json.load(sys.stdin).get("entries") or [] if e.get("problem")).items():
    print(f"{n} candidates: {text}")'
echo "== measured: $(($(date +%s) - STARTED)) s"
[ "${PREDICT:-1}" = 0 ] && exit 0

for p in ${PRECISIONS:-tf32 fp32}; do for n in "${names[@]}"; do echo "$p $n"; done; done |
  xargs -P "$(nproc)" -L 1 bash -c 'predict "$@"' _
for p in ${PRECISIONS:-tf32 fp32}; do for n in "${names[@]}"; do
  ls "$out/lib/$n.$p/"*.so >/dev/null 2>&1 || continue
  timeout 60 "$RAMMERC" bench "$out/lib/$n.$p" --runs 200 --format json >"$out/rows/$n.$p.bench.json" 2>"$out/log/$n.$p.bench"
done; done
python3 "$root/bench/predictions.py" "$out"
echo "== predicted: $(($(date +%s) - STARTED)) s"
