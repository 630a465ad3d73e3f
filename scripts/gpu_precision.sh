#!/usr/bin/env bash
# The latency and error of models under every precision, beside PyTorch, and if wanted beside another version of
# rammerc, in turns on one GPU.
#
#   scripts/gpu_precision.sh MODELS OUT [MODEL…]
#
# MODELS holds X.onnx files with their weights; those that bench/peers.py knows and that are not there are exported from
# PyTorch. OUT gets precision.json and logs. RAMMERC names the binary (default: built with go). OLD names a binary of
# another version, of which --precision is not asked; OLD_COMMIT says which. Every library is timed ROUNDS times, in turns
# with the others of the model. CHECKED are the models whose results are compared with the evaluator's, all by default; a
# space stands for none. INDUCTOR, if set, is how many seconds torch.compile may take for a model.
#
# SIDES are precisions, and old. The cost model chooses their plans; with -measured after the name measured costs do,
# where RAMMER_CACHE has them, and with -auto the fastest of several plans is taken as well. PyTorch is timed while
# the libraries are built that need no GPU for that; these builds have the lowest priority.
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
read -ra sides <<<"${SIDES:-${OLD:+old }strict fp32 tf32 fp16 bf16}"

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
  local binary=$RAMMERC flags="--precision ${2%%-*}"
  case $2 in
    old) binary=$OLD flags=--offline ;;
    *-measured) flags+=" --tries 1 --profile-budget 0" ;;
    *-auto) flags+=" --profile-budget 0" ;;
    *) flags+=" --offline" ;;
  esac
  # shellcheck disable=SC2046,SC2086
  timeout 400 "$binary" compile "$(model "$1")" $(dims "$1") --target "$arch" --emit lib $flags -o "$out/lib/$1.$2" --json \
    >"$out/rows/$1.$2.compile.json" 2>"$out/log/$1.$2.compile" || echo "build FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2.compile")"
}
export -f model dims build

build_sides() { # PATTERN: the libraries of all models and of the sides that match it
  local n s
  for n in "${names[@]}"; do for s in "${sides[@]}"; do [[ $s =~ $1 ]] && echo "$n $s"; done; done |
    nice -n 19 xargs -r -P "$(nproc)" -L 1 bash -c 'build "$@"' _
}

timeout 500 python3 "$root/bench/peers.py" ${INDUCTOR:+--inductor "$INDUCTOR"} "${names[@]}" >"$out/peers.json" 2>"$out/log/peers" &
peers=$!
build_sides '^[^-]*(-measured)?$'
echo "== build without a GPU: $SECONDS s"
wait $peers
echo "== peers: $SECONDS s"
build_sides '-auto$'
echo "== build, plans timed: $SECONDS s"

for n in "${names[@]}"; do
  for ((i = 0; i < ${ROUNDS:-3}; i++)); do
    for s in "${sides[@]}"; do
      [ -f "$out/lib/$n.$s/lib$n.so" ] || continue
      timeout 60 "$RAMMERC" bench "$out/lib/$n.$s" --runs "${RUNS:-200}" --json >"$out/rows/$n.$s.bench.$i.json" 2>"$out/log/$n.$s.bench"
    done
  done
done
echo "== bench: $SECONDS s"
check() { # NAME SIDE
  [ "$2" = old ] || [ ! -f "$out/lib/$1.$2/lib$1.so" ] && return
  # shellcheck disable=SC2046
  timeout 200 "$RAMMERC" verify "$out/lib/$1.$2" --model "$(model "$1")" $(dims "$1") --json \
    >"$out/rows/$1.$2.verify.json" 2>"$out/log/$1.$2.verify" || echo "verify FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2.verify")"
}
export -f check
for n in ${CHECKED:-${names[*]}}; do for s in "${sides[@]}"; do echo "$n $s"; done; done | xargs -r -P 8 -L 1 bash -c 'check "$@"' _
echo "== verify: $SECONDS s"
python3 "$root/bench/precision.py" "$out" "${sides[*]}" "${names[@]}"
