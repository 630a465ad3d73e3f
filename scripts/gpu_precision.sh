#!/usr/bin/env bash
# The latency and error of models under every precision, beside PyTorch, and if wanted beside another version of
# rammerc, in turns on one GPU.
#
#   scripts/gpu_precision.sh MODELS OUT [MODEL…]
#
# MODELS holds X.onnx files with their weights; those that bench/peers.py knows and that are not there are exported from
# PyTorch. OUT gets precision.json and logs. RAMMERC names the binary (default: built with go). OLD names a binary of
# another version, of which --precision is not asked; OLD_COMMIT says which. Every library is timed ROUNDS times, in turns
# with the others of the model. SIDES chooses among old, strict, fp32 and tf32. CHECKED are the models whose results are
# compared with the evaluator's, all by default; a space stands for none.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
models=$1 out=$2
shift 2
names=("$@")
mkdir -p "$out/lib" "$out/log" "$out/rows" "$out/models"
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
export RAMMERC OLD=${OLD:-} models out
export XDG_CACHE_HOME=$out/cache
arch=${ARCH:-sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')}
export arch
read -ra sides <<<"${SIDES:-${OLD:+old }strict fp32 tf32}"

missing=()
for n in "${names[@]}"; do [ -f "$models/$n.onnx" ] || missing+=("$n"); done
if [ ${#missing[@]} -gt 0 ]; then
  python3 "$root/bench/peers.py" --export "$out/models" "${missing[@]}" >"$out/log/export" 2>&1 || tail -n 3 "$out/log/export"
fi
echo "== export: $SECONDS s"

model() { # NAME: its file
  if [ -f "$models/$1.onnx" ]; then echo "$models/$1.onnx"; else echo "$out/models/$1.onnx"; fi
}

dims() { # NAME: all symbolic dims of a model, bound to small numbers
  "$RAMMERC" inspect "$(model "$1")" --json 2>/dev/null | python3 -c '
import json, sys
for d in json.load(sys.stdin)["dims"] or []:
    print("--dim", d + "=" + ("32" if d.startswith("seq") else "1"))'
}

build() { # NAME SIDE
  local binary=$RAMMERC flags="--precision $2"
  [ "$2" = old ] && binary=$OLD flags=
  # shellcheck disable=SC2046,SC2086
  timeout 400 "$binary" compile "$(model "$1")" $(dims "$1") --target "$arch" --offline --emit lib $flags -o "$out/lib/$1.$2" --json \
    >"$out/rows/$1.$2.compile.json" 2>"$out/log/$1.$2.compile" || echo "build FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2.compile")"
}
export -f model dims build
for n in "${names[@]}"; do for s in "${sides[@]}"; do echo "$n $s"; done; done | xargs -P "$(nproc)" -L 1 bash -c 'build "$@"' _
echo "== build: $SECONDS s"

for n in "${names[@]}"; do
  for ((i = 0; i < ${ROUNDS:-3}; i++)); do
    for s in "${sides[@]}"; do
      [ -f "$out/lib/$n.$s/lib$n.so" ] || continue
      timeout 60 "$RAMMERC" bench "$out/lib/$n.$s" --runs "${RUNS:-200}" --json >"$out/rows/$n.$s.bench.$i.json" 2>"$out/log/$n.$s.bench"
    done
  done
done
echo "== bench: $SECONDS s"
for n in ${CHECKED:-${names[*]}}; do
  for s in "${sides[@]}"; do
    [ "$s" = old ] || [ ! -f "$out/lib/$n.$s/lib$n.so" ] && continue
    # shellcheck disable=SC2046
    timeout 200 "$RAMMERC" verify "$out/lib/$n.$s" --model "$(model "$n")" $(dims "$n") --json \
      >"$out/rows/$n.$s.verify.json" 2>"$out/log/$n.$s.verify" || echo "verify FAILED: $n $s: $(tail -n 1 "$out/log/$n.$s.verify")"
  done
done
echo "== verify: $SECONDS s"
timeout 500 python3 "$root/bench/peers.py" ${INDUCTOR:+--inductor "$INDUCTOR"} "${names[@]}" >"$out/peers.json" 2>"$out/log/peers"
echo "== peers: $SECONDS s"
python3 "$root/bench/precision.py" "$out" "${sides[*]}" "${names[@]}"
