#!/usr/bin/env bash
# Measures how long steps of emitted programs take on this machine's GPU, and the same work written by hand and with
# cuBLAS. It compiles, verifies and times the models of bench/models.py with every plan, and runs bench/micro.
#
#   scripts/gpu_micro.sh OUT [MODEL…]
#
# OUT gets micro.json, which bench/collect_micro.py writes, logs, and all results that it is made of. MODEL is a name that
# `bench/models.py --list` prints; without any, all models are measured. The exit status is 1 when a check fails.
# Variables of the environment:
#
#   RAMMERC            the binary; by default it is built with go
#   NVCC               the compiler
#   PLANS, STEP_PLANS  the plans of chains, and of the other models
#   DEVICE             a device file to plan for
#   ARCH=emu           tries the script where there is no GPU; the figures mean nothing then
#   STEPS              which of the steps below are done. The step "trace" is only done if it is named here
#   TRACED             what "trace" profiles: NAME:PLAN each, of these models or of the folder MODELS. It writes their
#                      totals to traces.json, and timelines for Perfetto
#
# nvcc needs no GPU, so libraries can be built elsewhere: run STEPS="models build" ARCH=sm_90 there with the same commit,
# and name the OUT of that run in PREBUILT here. Of that folder only NAME.PLAN.compile.json and
# lib/NAME.PLAN/libNAME.so are needed.
set -uo pipefail
out=$1
shift
steps=${STEPS:-calibrate models build verify bench peers}
nvcc=${NVCC:-nvcc}
mkdir -p "$out/models" "$out/lib" "$out/log" "$out/plans"
source "$(dirname "$0")/gpu_common.sh"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  mapfile -t names < <(python3 "$root/bench/models.py" --list | python3 -c 'import json, sys; print(*json.load(sys.stdin), sep="\n")')
fi

plans() { # NAME: the plans to compile it with
  case $1 in
    chain_*) echo "${PLANS:-auto rprogram waves graph}" ;;
    edge_*) echo "one-veu two-veus" ;; # placed by bench/place.py
    group_*) # for devices with clusters
      case $arch in
        sm_9* | sm_1*) echo "${STEP_PLANS:-auto rprogram waves clusters-8}" ;;
        *) echo "${STEP_PLANS:-auto rprogram waves}" ;;
      esac
      ;;
    *) echo "${STEP_PLANS:-auto rprogram waves}" ;; # as a graph, every row would be a node
  esac
}

each() { # every model with each of its plans, a pair a line
  local n p
  for n in "${names[@]}"; do
    for p in $(plans "$n"); do echo "$n $p"; done
  done
}

place() { # NAME VEUS: a plan of the chain on so many vEUs
  timeout 100 "$RAMMERC" compile "$out/models/$1.onnx" --target "$arch" ${DEVICE:+--device "$DEVICE"} --offline --plan waves \
    --emit cu -o "$out/plans/$1.$2.lib" --dump "$out/plans/$1.$2" -q >/dev/null &&
    python3 "$root/bench/place.py" "$out/plans/$1.$2/"*_schedule_*.rprog "$2" >"$out/plans/$1.$2.rprog"
}
export -f place

build() { # NAME PLAN
  local emit=lib offline= ready=${PREBUILT:-}/lib/$1.$2/lib$1.so plan=$2
  [ -f "$ready" ] && emit=cu offline=--offline # the plan that was built, not one that this GPU would choose
  case $2 in
    one-veu) plan=$out/plans/$1.1.rprog && place "$1" 1 2>"$out/log/$1.$2.place" ;;
    two-veus) plan=$out/plans/$1.2.rprog && place "$1" 2 2>"$out/log/$1.$2.place" ;;
  esac
  timeout 550 "$RAMMERC" compile "$out/models/$1.onnx" --target "$arch" ${DEVICE:+--device "$DEVICE"} --plan "$plan" --emit $emit $offline \
    -o "$out/lib/$1.$2" --json >"$out/$1.$2.compile.json" 2>"$out/log/$1.$2.compile" ||
    echo "build FAILED: $1 $2: $(tail -n 2 "$out/log/$1.$2.compile")"
  if [ $emit = cu ]; then cp "$ready" "$out/lib/$1.$2/" && cp "$PREBUILT/$1.$2.compile.json" "$out/"; fi
}
export -f build

verify() { # NAME PLAN
  [ -f "$out/lib/$1.$2/lib$1.so" ] || return 0
  timeout 300 "$RAMMERC" verify "$out/lib/$1.$2" --model "$out/models/$1.onnx" --repeat 100 --json \
    >"$out/$1.$2.verify.json" 2>"$out/log/$1.$2.verify" || echo "verify FAILED: $1 $2: $(tail -n 2 "$out/log/$1.$2.verify")"
}

bench() { # NAME PLAN
  [ -f "$out/lib/$1.$2/lib$1.so" ] || return 0
  timeout 120 "$RAMMERC" bench "$out/lib/$1.$2" --json >"$out/$1.$2.bench.json" 2>"$out/log/$1.$2.bench" ||
    echo "bench FAILED: $1 $2: $(tail -n 2 "$out/log/$1.$2.bench")"
}

trace() { # NAME:PLAN
  local name=${1%:*} plan=${1#*:} model=$out/models/${1%:*}.onnx
  [ -f "$model" ] || model=${MODELS:-$out/models}/$name.onnx
  timeout 200 "$RAMMERC" profile "$model" --target "$arch" --plan "$plan" --perfetto "$out/$name.$plan.perfetto.json" --json \
    >"$out/$name.$plan.trace.json" 2>"$out/log/$name.$plan.trace" || echo "trace FAILED: $name $plan: $(tail -n 1 "$out/log/$name.$plan.trace")"
}
export -f trace

# cuBLAS is part of the CUDA toolkit and of the packages of PyTorch.
build_peers() {
  local flags=(-std=c++20 -O3 "-arch=$arch" -I"$root/internal/calibrate/cuda" -I"$root/codegen") cu
  "$nvcc" "${flags[@]}" "$root/bench/micro/peers.cu" -lcublas -o "$out/peers" 2>"$out/log/peers.nvcc" && return
  cu=$(python3 -c 'import glob, sys; print(*[d for p in sys.path for d in glob.glob(p + "/nvidia/cu*/include/cublas_v2.h")][:1])')
  if [ -n "$cu" ]; then
    cu=$(dirname "$(dirname "$cu")")
    "$nvcc" "${flags[@]}" -I"$cu/include" "$root/bench/micro/peers.cu" "$(find "$cu/lib" -name 'libcublas.so.*' | head -1)" \
      -Xlinker "-rpath,$cu/lib" -o "$out/peers" 2>>"$out/log/peers.nvcc" && return
  fi
  "$nvcc" "${flags[@]}" "$root/bench/micro/peers.cu" -o "$out/peers" 2>>"$out/log/peers.nvcc" ||
    echo "peers FAILED: $(tail -n 3 "$out/log/peers.nvcc")"
}

for step in $steps; do
  start=$SECONDS
  case $step in
    calibrate)
      "$RAMMERC" calibrate -q --force -o "$out/device.yaml" --raw "$out/device.json" >/dev/null 2>"$out/log/calibrate" ||
        echo "calibrate FAILED: $(tail -n 3 "$out/log/calibrate")"
      ;;
    models) python3 "$root/bench/models.py" "$out/models" "${names[@]}" || exit 1 ;;
    build)
      build_peers
      each | xargs -P "$(nproc)" -L 1 bash -c 'build "$0" "$1"'
      ;;
    verify) while read -r n p; do verify "$n" "$p"; done < <(each) ;;
    bench) while read -r n p; do bench "$n" "$p"; done < <(each) ;;
    trace)
      # shellcheck disable=SC2086
      printf '%s\n' ${TRACED:-chain_1024:waves chain_1024:rprogram group_8_short:clusters-8 sparse_8_short:rprogram} |
        xargs -P "$(nproc)" -I{} bash -c 'trace {}'
      python3 "$root/bench/collect_traces.py" "$out"
      ;;
    peers) timeout 120 "$out/peers" >"$out/peers.jsonl" 2>"$out/log/peers" || echo "peers FAILED: $(tail -n 3 "$out/log/peers")" ;;
  esac
  echo "== $step: $((SECONDS - start)) s"
done
python3 "$root/bench/collect_micro.py" "$out"
