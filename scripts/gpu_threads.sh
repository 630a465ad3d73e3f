#!/usr/bin/env bash
# Runs four libraries from 16 threads of one process, beside PyTorch's kernels on the default stream, and compares all
# bits (bench/threads.py). It needs a GPU and PyTorch.
#
#   scripts/gpu_threads.sh MODELS OUT
#
# MODELS is a folder of X.onnx files with their weights. OUT gets threads.json. The exit status is 1 when a call fails, a
# bit differs or a thread hangs. Variables of the environment:
#
#   SECONDS_TO_RUN  how long the threads run; 600 by default
#   THREADS         how many threads; 16 by default
#   NAMES           the models; digits_branchy googlenet resnet50 bert_l2_b1_s128 by default
#   STEPS           build, run, or both (the default); "run" takes the libraries that "build" left in OUT/lib
set -uo pipefail
mkdir -p "$2/lib" "$2/log"
models=$1 out=$2
source "$(dirname "$0")/gpu_common.sh"
steps=${STEPS:-build run}

build() { # NAME
  "$RAMMERC" compile "$(model "$1")" --target "$arch" --offline --emit lib -o "$out/lib/$1" -q >/dev/null 2>"$out/log/$1" ||
    { echo "build FAILED: $1: $(tail -n 2 "$out/log/$1")" && return 1; }
}
export -f build

libraries=${NAMES:-digits_branchy googlenet resnet50 bert_l2_b1_s128}
if [[ " $steps " == *" build "* ]]; then
  # shellcheck disable=SC2086
  printf '%s\n' $libraries | xargs -P 4 -I{} bash -c 'build {}' || exit 1
  echo "== built: $SECONDS s"
fi
if [[ " $steps " == *" run "* ]]; then
  # shellcheck disable=SC2086
  exec python3 "$root/bench/threads.py" "$out" "${SECONDS_TO_RUN:-600}" "${THREADS:-16}" $(printf "$out/lib/%s " $libraries)
fi
