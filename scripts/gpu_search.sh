#!/usr/bin/env bash
# What measuring is worth on the GPU at hand: beside the program that the cost model chooses alone, those that are chosen by
# measured rTasks, by timing plans (auto) and by a search (tune).
#
#   scripts/gpu_search.sh MODELS OUT
#
# MODELS holds X.onnx files with their weights; those that bench/peers.py knows and that are not there are exported from
# PyTorch. OUT gets search.json, a table on standard output, and logs.
#
# RAMMERC names the binary (default: built with go), PRECISION how products are made (default: tf32), NAMES the models.
# AUTO are the models for which auto times TRIES plans, TUNED those that are searched for TUNE_BUDGET each, MIXED those that
# are searched in fp32 and in all precisions inside the error budget MIXED_ERROR. COLLECT is how many seconds measuring
# rTasks may take in all. OTHER is another device file for the GPU at hand, such as one without anything that was fitted:
# what measuring is worth on a GPU that nobody has measured.
#
# STEPS=build stops before anything is timed that counts, and STEPS=time goes on from there.
set -uo pipefail
mkdir -p "$2/log" "$2/rows" "$2/models" "$2/lib" "$2/nvcc"
models=$1 out=$2
source "$(dirname "$0")/gpu_common.sh"
export PRECISION=${PRECISION:-tf32} TRIES=${TRIES:-10}
export RAMMER_CACHE=$out/measured.jsonl
export REAL_NVCC=${NVCC:-nvcc} NVCC=$root/scripts/nvcc_once.sh NVCC_KEPT=$out/nvcc
read -ra names <<<"${NAMES:-squeezenet1_1 resnet50 bert_l2_b1_s128 vit_tiny_patch16_224 googlenet nasnet_cifar}"
read -ra auto <<<"${AUTO-${names[*]}}"
read -ra tuned <<<"${TUNED-squeezenet1_1 bert_l2_b1_s128}"
read -ra mixed <<<"${MIXED-squeezenet1_1}"
export mixed_error=${MIXED_ERROR:-1e-3}

export_missing "${names[@]}"

build() { # NAME SIDE FLAG…: a library
  local n=$1 side=$2
  shift 2
  timeout 200 "$RAMMERC" compile "$(model "$n")" --target "$arch" --emit lib -o "$out/lib/$n.$side" --json "$@" \
    >"$out/rows/$n.$side.compile.json" 2>"$out/log/$n.$side.compile" ||
    echo "build FAILED: $n $side: $(tail -n 1 "$out/log/$n.$side.compile")"
}

tune() { # NAME SIDE FLAG…: searches, and builds what it found; it begins with a database of its own
  local n=$1 side=$2 base=$out/$1.$2.db
  shift 2
  mkdir -p "$base"
  RAMMER_CACHE=$base/measured.jsonl "$RAMMERC" tune "$(model "$n")" --budget "${TUNE_BUDGET:-80s}" --json "$@" \
    >"$out/rows/$n.$side.tune.json" 2>"$out/log/$n.$side.tune" || echo "tune FAILED: $n: $(tail -n 1 "$out/log/$n.$side.tune")"
  RAMMER_CACHE=$base/measured.jsonl build "$n" "$side" --tries 1 --profile-budget 0 "$@"
}
export -f build tune

if [ "${STEPS:-all}" != time ]; then
  {
    for n in "${names[@]}"; do echo "build $n model --precision $PRECISION --tries 1 --offline"; done
    [ -z "${OTHER:-}" ] || for n in "${names[@]}"; do echo "build $n other --precision $PRECISION --device $OTHER --tries 1 --offline"; done
    for n in "${mixed[@]}"; do echo "build $n fp32 --precision fp32 --tries 1 --offline"; done
  } | xargs -P "$(nproc)" -L 1 bash -c '"$@"' _ &
  files=()
  for n in "${names[@]}"; do files+=("$(model "$n")"); done
  "$RAMMERC" collect "${files[@]}" --precision "$PRECISION" --budget "${COLLECT:-120}s" --json >"$out/rows/collect.json" 2>"$out/log/collect" ||
    echo "collect FAILED: $(tail -n 1 "$out/log/collect")"
  for n in "${names[@]}"; do echo "build $n measured --precision $PRECISION --tries 1 --profile-budget 0"; done |
    xargs -P "$(nproc)" -L 1 bash -c '"$@"' _
  wait
  echo "== built: $SECONDS s"
fi
[ "${STEPS:-all}" = build ] && exit 0
for n in "${tuned[@]}"; do tune "$n" tuned --precision "$PRECISION"; done
for n in "${mixed[@]}"; do tune "$n" mixed --precision fp32 --error-budget "$mixed_error"; done
echo "== tuned: $SECONDS s"
{
  for n in "${auto[@]}"; do echo "build $n auto --precision $PRECISION --tries $TRIES --profile-budget 0"; done
  [ -z "${OTHER:-}" ] || for n in "${auto[@]}"; do echo "build $n other-auto --precision $PRECISION --device $OTHER --tries $TRIES --profile-budget 0"; done
} | xargs -P "$(nproc)" -L 1 bash -c '"$@"' _
echo "== auto: $SECONDS s"
for ((i = 0; i < ${ROUNDS:-3}; i++)); do
  for l in "$out"/lib/*; do
    timeout 60 "$RAMMERC" bench "$l" --runs "${RUNS:-200}" --json >"$out/rows/$(basename "$l").bench.$i.json" 2>>"$out/log/bench"
  done
done
echo "== bench: $SECONDS s"
python3 "$root/bench/search.py" "$out" "$PRECISION"
