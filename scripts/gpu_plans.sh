#!/usr/bin/env bash
# The Rammer paper's six models under several kinds of plan, and its Figure 17, each plan as a library of its own, timed in
# turns on one GPU.
#
#   scripts/gpu_plans.sh MODELS OUT
#
# MODELS holds X.onnx files with their weights; those that bench/peers.py knows and that are not there are exported from
# PyTorch. OUT gets plans.json and plans.png, a table on standard output, and logs.
#
# RAMMERC names the binary (default: built with go), PRECISION how products are made (default: fp32), and NAMES the models.
# PLANS are their kinds of plan, beside wavefront (Algorithm 1), auto, and model, which the cost model chooses alone.
# FIGURE names the models of Figure 17. The plans auto are made by timing TRIES plans.
#
# STEPS=build stops before anything is timed that counts, and STEPS=time goes on from there with what has been built: by
# then all that nvcc has to compile is compiled, also for the plans that auto tries.
set -uo pipefail
mkdir -p "$2/log" "$2/rows" "$2/models" "$2/lib" "$2/nvcc"
models=$1 out=$2
source "$(dirname "$0")/gpu_common.sh"
export PRECISION=${PRECISION:-fp32} TRIES=${TRIES:-8}
export REAL_NVCC=${NVCC:-nvcc} NVCC=$root/scripts/nvcc_once.sh NVCC_KEPT=$out/nvcc
read -ra names <<<"${NAMES:-resnext29_16x64d nasnet_cifar alexnet deepspeech2 lstm_tc seq2seq}"
read -ra plans <<<"${PLANS:-base opara critical-path}"
read -ra figure <<<"${FIGURE:-lstm_tc resnext29_16x64d}"

export_missing "${names[@]}"

build() { # NAME PLAN: a library, unless it is there
  local flags="--plan $2 --offline"
  case $2 in
    wavefront) flags="--plan mixed --offline" ;;
    model) flags="--tries 1 --offline" ;;
    auto) flags="--tries $TRIES --profile-budget 0" ;;
  esac
  [ -f "$out/lib/$1.$2/lib$1.so" ] && return
  # shellcheck disable=SC2086
  timeout 300 nice "$RAMMERC" compile "$(model "$1")" --target "$arch" --precision "$PRECISION" $flags --emit lib \
    -o "$out/lib/$1.$2" --json >"$out/rows/$1.$2.compile.json" 2>"$out/log/$1.$2.compile" ||
    echo "build FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2.compile")"
}

try() { # NAME: makes the plan auto, so that nvcc has compiled what it tries, and makes nothing of the times
  [ -e "$out/nvcc/$1" ] && return
  build "$1" auto
  rm -rf "$out/lib/$1.auto"
  touch "$out/nvcc/$1"
}
export -f build try

[ "${STEPS:-all}" = time ] || {
  for n in "${names[@]}"; do echo "try $n"; done
  for n in "${names[@]}"; do for p in "${plans[@]}" wavefront model; do echo "build $n $p"; done; done
  for n in "${figure[@]}"; do for p in base base-selected mixed-fast wavefront; do echo "build $n $p"; done; done
} | sort -ru | xargs -P "$(nproc)" -L 1 bash -c '"$@"' _
echo "== built: $SECONDS s"
[ "${STEPS:-all}" = build ] && exit 0
for n in "${names[@]}"; do [ "${STEPS:-all}" = time ] && [ ! -e "$out/nvcc/$n" ] || build "$n" auto; done
echo "== auto: $SECONDS s"

for ((i = 0; i < ${ROUNDS:-2}; i++)); do
  for l in "$out"/lib/*; do
    timeout 60 "$RAMMERC" bench "$l" --runs "${RUNS:-150}" --json >"$out/rows/$(basename "$l").bench.$i.json" 2>>"$out/log/bench"
  done
done
echo "== bench: $SECONDS s"
python3 "$root/bench/plans.py" "$out" "$PRECISION" "${names[*]}" "${figure[*]}"
