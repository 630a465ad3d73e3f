#!/bin/bash
# Runs margins.cc of internal/systemtest/attacks on the GPU: inferences at extents of a range, with branches, loops and
# found extents, where all device memory stands between poisoned margins.
#
#   RAMMERC=./rammerc bash scripts/gpu_margins.sh FOLDER [build|run]
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
data=$repo/internal/systemtest/attacks/testdata
folder=$1 step=${2:-all}
if [ "$step" != run ]; then
  rm -rf "$folder"
  "$RAMMERC" compile "$data/margins.rir" --target sm_90 --plan rprogram --dim seq=1..8 --emit cu \
    -o "$folder" -q
  (cd "$folder" && "${NVCC:-nvcc}" -std=c++20 -O1 -arch=sm_90 -x cu -I. "$data/margins.cc" -o margins)
fi
if [ "$step" != build ]; then (cd "$folder" && ./margins margins.weights); fi
