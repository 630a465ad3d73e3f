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
# RAMMERC names the binary (default: built with go). PRECISIONS are measured one after another (default: tf32 fp32).
# LIMIT is how many seconds measuring may take in all, EACH how many for one model in one precision. AT_ONCE models are
# built side by side; they take turns on the GPU. PREDICT=0 leaves out the table of predictions.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
models=$1 out=$2
shift 2
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(squeezenet1_1 resnet50 bert_l4_s32 vit_tiny_patch16_224 googlenet resnet18
  mobilenet_v3_small efficientnet_b0 inception_v3 resnext29_16x64d nasnet_cifar lstm_tc seq2seq deepspeech2 gpt2_l2 alexnet)
mkdir -p "$out/log" "$out/models" "$out/lib" "$out/rows"
out=$(cd "$out" && pwd)
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
export RAMMERC models out
export XDG_CACHE_HOME=$out/cache RAMMER_CACHE=$out/measured.jsonl
export LIMIT=${LIMIT:-270} EACH=${EACH:-40}
STARTED=$(date +%s)
export STARTED

missing=()
for n in "${names[@]}"; do [ -f "$models/$n.onnx" ] || missing+=("$n"); done
if [ ${#missing[@]} -gt 0 ]; then
  timeout 200 python3 "$root/bench/peers.py" --export "$out/models" "${missing[@]}" >"$out/log/export" 2>&1 || tail -n 3 "$out/log/export"
fi

model() { # NAME: its file
  if [ -f "$models/$1.onnx" ]; then echo "$models/$1.onnx"; else echo "$out/models/$1.onnx"; fi
}

dims() { # NAME: all symbolic dims of a model, bound to small numbers
  "$RAMMERC" inspect "$(model "$1")" --json 2>/dev/null | python3 -c '
import json, sys
for d in json.load(sys.stdin)["dims"] or []:
    print("--dim", d + "=" + ("32" if d.startswith("seq") else "1"))' 2>/dev/null
}

measure() { # PRECISION NAME: its candidates, in what time is left
  local left=$((LIMIT - $(date +%s) + STARTED))
  [ "$left" -ge 8 ] || { echo "no time left for $2 $1"; return; }
  local budget=$((left < EACH ? left : EACH))
  # shellcheck disable=SC2046
  timeout $((budget + 30)) "$RAMMERC" tune "$(model "$2")" $(dims "$2") --precision "$1" --candidates-only \
    --budget "${budget}s" --json >"$out/rows/$2.$1.tune.json" 2>"$out/log/$2.$1.tune" ||
    echo "FAILED: $2 $1: $(tail -n 1 "$out/log/$2.$1.tune")"
  echo "$2 $1 at $(($(date +%s) - STARTED)) s: $(grep measure "$out/log/$2.$1.tune" | tail -n 1)"
}

predict() { # PRECISION NAME: builds what the costs choose, from what is measured
  # shellcheck disable=SC2046
  timeout 120 "$RAMMERC" compile "$(model "$2")" $(dims "$2") --precision "$1" --tries 1 --profile-budget 0 --emit all \
    -o "$out/lib/$2.$1" --json >"$out/rows/$2.$1.compile.json" 2>"$out/log/$2.$1.compile" ||
    echo "FAILED: $2 $1: $(tail -n 1 "$out/log/$2.$1.compile")"
}
export -f model dims measure predict

for p in ${PRECISIONS:-tf32 fp32}; do for n in "${names[@]}"; do echo "$p $n"; done; done |
  xargs -P "${AT_ONCE:-2}" -L 1 bash -c 'measure "$@"' _
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
