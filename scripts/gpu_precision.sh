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
# space stands for none. INDUCTOR, if set, is how many seconds torch.compile may take for all models together. PEERS, if
# set, is what bench/peers.py has printed in another run on such a GPU, instead of timing PyTorch in this one.
#
# SIDES are precisions, and old. The cost model chooses their plans; with -measured after the name measured costs do,
# where RAMMER_CACHE has them, and with -auto the fastest of several plans is taken as well.
#
# BEFORE_TIMING is a command that is run when everything is made and nothing has been timed yet.
#
# First everything is made that need not be timed: libraries, what the evaluator computes, and what torch.compile makes of
# the models; and the libraries' results are checked. Then the libraries and PyTorch have the GPU for themselves, one after
# another. precision.json is written after the libraries, too: if PyTorch takes too long for the time there is, ours is there.
set -uo pipefail
models=$1 out=$2
shift 2
names=("$@")
mkdir -p "$out/lib" "$out/log" "$out/rows" "$out/models" "$out/reference"
source "$(dirname "$0")/gpu_common.sh"
export OLD=${OLD:-}
read -ra sides <<<"${SIDES:-${OLD:+old }strict fp32 tf32 fp16 bf16}"

# The processes of torch.compile give way to those of nvcc, whose times are recorded.
mkfifo "$out/free.$$"
exec 3<>"$out/free.$$"
rm "$out/free.$$"
if [ -n "${PEERS:-}" ]; then
  cp "$PEERS" "$out/peers.json" &
else
  nice -n 10 timeout 900 python3 "$root/bench/peers.py" --inductor "${INDUCTOR:-0}" "${names[@]}" <&3 >"$out/peers.json" \
    2>"$out/log/peers" &
fi
peers=$!

export_missing "${names[@]}"
echo "== export: $SECONDS s"

ports() { # NAME inputs|outputs: their names
  "$RAMMERC" inspect "$(model "$1")" --json 2>/dev/null |
    python3 -c 'import json, sys; [print(o["name"]) for o in json.load(sys.stdin)[sys.argv[1]]]' "$2"
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

refer() { # NAME: what the evaluator makes of random inputs, which fit the model; a library knows nothing of that
  # shellcheck disable=SC2046
  timeout 300 "$RAMMERC" run "$(model "$1")" $(dims "$1") --engine eval --random 1 --save-inputs "$out/reference/$1.in.npz" \
    -o "$out/reference/$1.npz" -q 2>"$out/log/$1.eval" >/dev/null ||
    echo "evaluator FAILED: $1: $(tail -n 1 "$out/log/$1.eval")"
}

check() { # NAME SIDE: the library's results against the evaluator's
  [ "$2" = old ] || [ ! -f "$out/lib/$1.$2/lib$1.so" ] && return
  local given expected
  given=$(ports "$1" inputs | sed "s|.*|--input &=$out/reference/$1.in.npz|")
  expected=$(ports "$1" outputs | sed "s|.*|--expect &=$out/reference/$1.npz|")
  # shellcheck disable=SC2086
  timeout 200 "$RAMMERC" verify "$out/lib/$1.$2" $given $expected --json \
    >"$out/rows/$1.$2.verify.json" 2>"$out/log/$1.$2.verify" || echo "verify FAILED: $1 $2: $(tail -n 1 "$out/log/$1.$2.verify")"
}
export -f ports build refer check

sides_of() { # PATTERN NAME…: the models with the sides that match it
  local n s pattern=$1
  shift
  for n in "$@"; do for s in "${sides[@]}"; do [[ $s =~ $pattern ]] && echo "$n $s"; done; done
}

build_sides() { # PATTERN
  sides_of "$1" "${names[@]}" | xargs -r -P "$(nproc)" -L 1 bash -c 'build "$@"' _
}

check_sides() { # PATTERN
  # shellcheck disable=SC2086
  sides_of "$1" ${CHECKED:-${names[*]}} | xargs -r -P 8 -L 1 bash -c 'check "$@"' _
}

# shellcheck disable=SC2086
printf '%s\n' ${CHECKED:-${names[*]}} | xargs -r -P 8 -L 1 bash -c 'refer "$@"' _ &
references=$!
build_sides '^[^-]*(-measured)?$'
wait $references
echo "== build: $SECONDS s"
check_sides '^[^-]*(-measured)?$'
echo "== verify: $SECONDS s"
until grep -q '^compiled' "$out/log/peers" || ! kill -0 $peers 2>/dev/null; do sleep 0.5; done
echo "== inductor: $SECONDS s"
eval "${BEFORE_TIMING:-}"
build_sides '-auto$'
check_sides '-auto$'
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
python3 "$root/bench/precision.py" "$out" "${sides[*]}" "${names[@]}" >/dev/null
echo free >&3
wait $peers
echo "== peers: $SECONDS s"
python3 "$root/bench/precision.py" "$out" "${sides[*]}" "${names[@]}"
