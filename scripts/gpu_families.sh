#!/usr/bin/env bash
# Single operators out of real models beside the vendor's library, one row of a table for each: bench/families.py says
# what is timed and how.
#
#   scripts/gpu_families.sh OUT [FAMILY…]
#
# OUT gets FAMILY.json, libraries and logs. Variables of the environment:
#
#   RAMMERC      the binary; by default it is built with go
#   ONLY         a pattern: only rows whose names contain it
#   PRECISIONS   what is compared, "tf32 fp16" by default
#   ARCH         the architecture to compile for, by default that of this machine's GPU
#   STEPS        which of models, build and time are done, all by default; "models build" needs no GPU
set -uo pipefail
out=$1
shift
mkdir -p "$out/lib" "$out/log" "$out/models"
steps=" ${STEPS:-models build time} "
read -ra precisions <<<"${PRECISIONS:-tf32 fp16}"
source "$(dirname "$0")/gpu_common.sh"

build() { # NAME PRECISION
  timeout 200 "$RAMMERC" compile "$out/models/$2/$1.onnx" --target "$arch" --offline --emit lib --precision "$2" \
    -o "$out/lib/$1.$2" -q >/dev/null 2>"$out/log/$1.$2" || echo "build FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2")"
}
export -f build

if [[ $steps == *" models "* ]]; then
  python3 "$root/bench/families.py" models "$out/models" "${precisions[@]}" --only "${ONLY:-}" --family "$@" >"$out/names" || exit 1
fi
if [[ $steps == *" build "* ]]; then
  while read -r n; do for p in "${precisions[@]}"; do echo "$n $p"; done; done <"$out/names" |
    xargs -P "$(nproc)" -L 1 bash -c 'build "$@"' _
  echo "== build: $SECONDS s"
fi
if [[ $steps == *" time "* ]]; then
  [ $# -gt 0 ] || set -- gemm conv depthwise attention gemv
  for family in "$@"; do
    rm -f "$out/$family.json"
    again=3 # the status of a process that must leave the rest to another one
    while [ $again = 3 ]; do
      python3 "$root/bench/families.py" time "$out" "${precisions[@]}" --only "${ONLY:-}" --family "$family"
      again=$?
      [ $again = 0 ] || failed=1
    done
  done
  echo "== time: $SECONDS s"
fi
exit "${failed:-0}"
