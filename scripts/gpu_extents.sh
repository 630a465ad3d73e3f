#!/usr/bin/env bash
# Programs for ranges of extents beside programs that are compiled for exactly one, on the GPU at hand.
#
#   scripts/gpu_extents.sh MODEL OUT
#
# MODEL is an .onnx file whose dims are called batch and seq, with its weights: a BERT of two layers. OUT gets
# extents.json, lengths.json, the libraries and logs. For seq=1..512 there are a library of the general program alone,
# one with the special programs that the compiler chooses, which is verified at every extent, and one with those that
# are asked for by NAMED; and a library for each extent that is timed.
#
# Variables of the environment, beside RAMMERC and ARCH: EXTENTS, "16 64 200 333 512"; NAMED, "16,32,64,128,256";
# PRECISIONS, "fp32 fp16"; STEPS, "build time lengths", of which build needs no GPU, and lengths needs PyTorch: it
# measures what all lengths from 1 to 512 take of memory, and what changing the length takes of time
# (bench/lengths.py); WAYS, "general auto named graphs compiled" for lengths; ROUNDS (3), in each of which all libraries
# are timed; KINDS, "general auto named".
set -uo pipefail
mkdir -p "$2/lib" "$2/rows"
model=$(realpath "$1") out=$2
source "$(dirname "$0")/gpu_common.sh"
export model
read -ra extents <<<"${EXTENTS:-16 64 200 333 512}"
read -ra precisions <<<"${PRECISIONS:-fp32 fp16}"

step() { # NAME COMMAND…: its JSON and its log are in rows
  local row=$out/rows/$1
  timeout 200 "$RAMMERC" "${@:2}" --json >"$row.json" 2>"$row.err" || echo "FAILED: $1: $(tail -n 1 "$row.err")"
}
build() { # PRECISION NAME RANGE FLAG…
  step "$2.$1.compile" compile "$model" --name model --precision "$1" --target "$arch" --offline --emit lib \
    --dim batch=1 --dim "seq=$3" -o "$out/lib/$2.$1" "${@:4}"
}
export -f step build

kinds=${KINDS:-general auto named}
steps=" ${STEPS:-build time lengths} "
if [[ $steps == *" build "* ]]; then
  for p in "${precisions[@]}"; do
    for kind in $kinds; do
      case $kind in
        named) echo "$p named 1..512 --typical seq=${NAMED:-16,32,64,128,256}" ;;
        auto) echo "$p auto 1..512" ;;
        general) echo "$p general 1..512 --typical none" ;;
      esac
    done
    for n in "${extents[@]}"; do echo "$p exact$n $n"; done
  done | xargs -P "$(nproc)" -L 1 bash -c 'build "$@"' _
fi
if [[ $steps == *" time "* ]]; then
  for ((i = 0; i < ${ROUNDS:-3}; i++)); do
    for p in "${precisions[@]}"; do
      for n in "${extents[@]}"; do
        step "exact$n.$p.$n.bench.$i" bench "$out/lib/exact$n.$p" --runs "${RUNS:-200}"
        for kind in $kinds; do
          step "$kind.$p.$n.bench.$i" bench "$out/lib/$kind.$p" --dim "seq=$n" --runs "${RUNS:-200}"
        done
      done
    done
  done
  for p in "${precisions[@]}"; do
    for n in "${extents[@]}"; do
      step "auto.$p.$n.verify" verify "$out/lib/auto.$p" --model "$model" --dim "seq=$n"
    done
  done
  python3 "$root/bench/extents.py" "$out" "$(basename "$model" .onnx)" "${precisions[*]}" "${extents[*]}"
fi
if [[ $steps == *" lengths "* ]]; then
  rows=()
  for way in ${WAYS:-general auto named graphs compiled}; do
    row=$out/rows/lengths.$way.json library=()
    [ -d "$out/lib/$way.${precisions[0]}" ] && library=("$out/lib/$way.${precisions[0]}")
    timeout 300 python3 "$root/bench/lengths.py" "$way" "${library[@]}" 512 >"$row" 2>"${row%json}err" &&
      rows+=("$row") || echo "FAILED: lengths $way: $(tail -n 1 "${row%json}err")"
  done
  python3 "$root/bench/lengths.py" gather "$out/lengths.json" "${rows[@]}"
fi
