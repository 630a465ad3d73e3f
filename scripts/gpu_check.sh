#!/usr/bin/env bash
# Checks everything on a machine with a GPU: builds libraries of models, verifies their results, runs them under
# compute-sanitizer and many times, and measures their latency and that of PyTorch.
#
#   scripts/gpu_check.sh MODELS OUT [MODEL…]
#
# MODELS is a folder of X.onnx files with their weights. OUT gets X.*.json, logs and summary.json. RAMMERC names the
# binary; by default it is built with go. STEPS chooses among the steps below. The step "persistent" also compiles every
# model as one rProgram and verifies it; the step "cross" compiles for sm_80. Models are built in parallel, so no plans
# are timed: the cost model decides.
#
# nvcc needs no GPU, so libraries can be built elsewhere: run STEPS=build ARCH=sm_90 there with the same commit, and
# name the OUT of that run in PREBUILT here. Of that folder only NAME.lib.json and lib/NAME/libNAME.so are needed.
set -uo pipefail
models=$1 out=$2
shift 2
steps=${STEPS:-build verify persistent waves cross cprogram sanitize repeat bench peers}
mkdir -p "$out/lib" "$out/one" "$out/sm_80" "$out/log"
source "$(dirname "$0")/gpu_common.sh"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for f in "$models"/*.onnx; do names+=("$(basename "$f" .onnx)"); done
fi
sanitized=${SANITIZED:-digits_branchy digits_lstm squeezenet1_1}
repeated=${REPEATED:-squeezenet1_1}
programs=${PROGRAMS:-digits_branchy}

build() { # NAME DIR FLAGS…
  local n=$1 dir=$2
  shift 2
  case " $* " in *" --target "*) ;; *) set -- --target "$arch" "$@" ;; esac
  local ready=${PREBUILT:-}/$dir/$n/lib$n.so
  [ -f "$ready" ] && set -- "$@" --emit cu --offline
  # shellcheck disable=SC2046
  timeout 500 "$RAMMERC" compile "$models/$n.onnx" $(dims "$n") -o "$out/$dir/$n" --tries 1 --json "$@" \
    >"$out/$n.$dir.json" 2>"$out/log/$n.$dir" || echo "build FAILED: $n: $(tail -n 3 "$out/log/$n.$dir")"
  if [ -f "$ready" ]; then cp "$ready" "$out/$dir/$n/" && cp "$PREBUILT/$n.$dir.json" "$out/"; fi
}
export -f build

verify() { # NAME DIR TAG FLAGS…
  local n=$1 dir=$2 tag=$3
  shift 3
  [ -f "$out/$dir/$n/lib$n.so" ] || return 0
  # shellcheck disable=SC2046
  timeout 300 "$RAMMERC" verify "$out/$dir/$n" --model "$models/$n.onnx" $(dims "$n") --json "$@" \
    >"$out/$n.$tag.json" 2>"$out/log/$n.$tag" || echo "$tag FAILED: $n: $(tail -n 3 "$out/log/$n.$tag")"
}

for step in $steps; do
  start=$SECONDS
  case $step in
    build) printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'build {} lib' ;;
    verify) for n in "${names[@]}"; do verify "$n" lib verify --samples 2; done ;;
    persistent)
      printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'build {} one --plan rprogram'
      for n in "${names[@]}"; do verify "$n" one persistent; done
      ;;
    waves) for n in "${names[@]}"; do verify "$n" lib waves --waves; done ;;
    cross) printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'build {} sm_80 --target sm_80 --offline' ;;
    cprogram)
      for n in $programs; do
        cc -O2 -I"$out/lib/$n" "$root/testdata/cprogram/main.c" -o "$out/cprogram" -L"$out/lib/$n" -l"$n" -lpthread -lm \
          -Wl,-rpath,"$out/lib/$n" && "$out/cprogram" && echo "C program on $n: ok" || echo "C program FAILED on $n"
      done
      ;;
    repeat) for n in $repeated; do verify "$n" lib repeat --repeat 10000; done ;;
    sanitize)
      for n in $sanitized; do
        for tool in memcheck racecheck synccheck; do
          timeout 60 "$RAMMERC" run "$out/lib/$n" --random 1 -q \
            --run-under "compute-sanitizer --tool $tool --error-exitcode 9 --log-file $out/log/$n.$tool" >"$out/log/$n.$tool.run" 2>&1
          echo "{\"model\": \"$n\", \"tool\": \"$tool\", \"exit\": $?, \"summary\": \"$(grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/log/$n.$tool" | tail -n 1 | tr -d '"')\"}"
        done
      done | tee "$out/sanitize.jsonl"
      ;;
    bench)
      for n in "${names[@]}"; do
        [ -f "$out/lib/$n/lib$n.so" ] || continue
        timeout 120 "$RAMMERC" bench "$out/lib/$n" --json >"$out/$n.bench.json" 2>"$out/log/$n.bench" || echo "bench FAILED: $n: $(tail -n 2 "$out/log/$n.bench")"
        timeout 120 "$RAMMERC" bench --waves "$out/lib/$n" --json >"$out/$n.bench-waves.json" 2>"$out/log/$n.bench-waves"
        [ -d "$out/one/$n" ] && timeout 120 "$RAMMERC" bench "$out/one/$n" --json >"$out/$n.bench-persistent.json" 2>"$out/log/$n.bench-persistent"
      done
      ;;
    peers) timeout 400 python3 "$root/bench/peers.py" "${names[@]}" >"$out/peers.json" 2>"$out/log/peers" ;;
  esac
  echo "== $step: $((SECONDS - start)) s"
done
python3 "$root/bench/collect.py" "$out" "${names[@]}"
