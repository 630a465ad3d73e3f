#!/usr/bin/env bash
# A whole check on a machine with a GPU: build, correctness, compute-sanitizer, repeated runs, latency,
# and PyTorch beside ours.
#
#   scripts/gpu_check.sh MODELS OUT [MODEL…]
#
# MODELS holds X.onnx files (with their weights) and OUT gets X.*.json, logs and summary.json. RAMMERC
# names the binary (default: built with go). STEPS chooses among: build verify waves sanitize repeat bench peers.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
models=$1 out=$2
shift 2
steps=${STEPS:-build verify waves sanitize repeat bench peers}
mkdir -p "$out/lib" "$out/log"
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
export RAMMERC models out
export XDG_CACHE_HOME=$out/cache
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')
export arch
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for f in "$models"/*.onnx; do names+=("$(basename "$f" .onnx)"); done
fi
sanitized=${SANITIZED:-digits_branchy digits_lstm squeezenet1_1}
repeated=${REPEATED:-squeezenet1_1}

dims() { # the symbolic dims of a model, all bound to small numbers
  "$RAMMERC" inspect "$models/$1.onnx" --json 2>/dev/null | python3 -c '
import json, sys
for d in json.load(sys.stdin)["dims"] or []:
    print("--dim", d + "=" + ("32" if d.startswith("seq") else "1"))'
}
export -f dims

build() {
  # shellcheck disable=SC2046
  timeout 500 "$RAMMERC" compile "$models/$1.onnx" $(dims "$1") --target "$arch" -o "$out/lib/$1" --json \
    >"$out/$1.compile.json" 2>"$out/log/$1.compile" || echo "build FAILED: $1: $(tail -n 3 "$out/log/$1.compile")"
}
export -f build

verify() { # NAME TAG FLAGS…
  local n=$1 tag=$2
  shift 2
  [ -f "$out/lib/$n/lib$n.so" ] || return 0
  # shellcheck disable=SC2046
  timeout 300 "$RAMMERC" verify "$out/lib/$n" --model "$models/$n.onnx" $(dims "$n") --json "$@" \
    >"$out/$n.$tag.json" 2>"$out/log/$n.$tag" || echo "$tag FAILED: $n: $(tail -n 3 "$out/log/$n.$tag")"
}

for step in $steps; do
  start=$SECONDS
  case $step in
    build) printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'build {}' ;;
    verify) for n in "${names[@]}"; do verify "$n" verify --samples 2; done ;;
    waves) for n in "${names[@]}"; do verify "$n" waves --waves; done ;;
    repeat) for n in $repeated; do verify "$n" repeat --repeat 10000; done ;;
    sanitize)
      for n in $sanitized; do
        for tool in memcheck racecheck synccheck; do
          timeout 300 compute-sanitizer --target-processes all --tool $tool --error-exitcode 9 \
            "$RAMMERC" run "$out/lib/$n" --random 1 >"$out/log/$n.$tool" 2>&1
          echo "{\"model\": \"$n\", \"tool\": \"$tool\", \"exit\": $?, \"summary\": \"$(grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/log/$n.$tool" | tail -n 1 | tr -d '"')\"}"
        done
      done | tee "$out/sanitize.jsonl"
      ;;
    bench)
      for n in "${names[@]}"; do
        [ -f "$out/lib/$n/lib$n.so" ] || continue
        timeout 120 "$RAMMERC" bench "$out/lib/$n" --json >"$out/$n.bench.json" 2>"$out/log/$n.bench" || echo "bench FAILED: $n: $(tail -n 2 "$out/log/$n.bench")"
        timeout 120 "$RAMMERC" bench --waves "$out/lib/$n" --json >"$out/$n.bench-waves.json" 2>"$out/log/$n.bench-waves"
      done
      ;;
    peers) timeout 400 python3 "$root/bench/peers.py" "${names[@]}" >"$out/peers.json" 2>"$out/log/peers" ;;
  esac
  echo "== $step: $((SECONDS - start)) s"
done
python3 "$root/bench/collect.py" "$out" "${names[@]}"
