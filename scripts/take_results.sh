#!/usr/bin/env bash
# Puts what scripts/gpu_results.sh left in a folder into bench/results, and README's tables are made from it.
#
#   scripts/take_results.sh OUT
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
results=$root/bench/results
cp "$1/precision/precision.json" "$results/h200-latency.json"
for family in gemm gemv conv depthwise attention; do
  cp "$1/families/$family.json" "$results/h200-$family.json"
done
if [ -d "$1/plans" ]; then # the run may have left them out
  cp "$1/plans/plans.json" "$results/h200-plans.json"
  cp "$1/plans/plans.png" "$results/h200-plans.png"
fi
cd "$root" && go generate ./scripts/benchtables
