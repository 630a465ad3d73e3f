#!/usr/bin/env bash
# Looks for missing waits, barriers and fences on a machine with a GPU. It makes many launches in which vEUs sleep at
# random, runs two contexts at once on two streams, and on two GPUs if there are, uses compute-sanitizer, and runs two
# processes that share a GPU through MPS.
#
#   scripts/gpu_stress.sh MODELS OUT
#
# MODELS is a folder of X.onnx files with their weights. OUT gets stress.json and logs. The exit status is 1 when a result
# differs. Variables of the environment:
#
#   RAMMERC            the binary; by default it is built with go
#   STEPS              which of delays, contexts, devices, sanitize and mps are done. Nothing is timed, so all but mps run
#                      at once, sanitize on the second GPU if there is one
#   DELAYED            what "delays" runs: NAME:PLAN:LAUNCHES each
#   SANITIZED, SHARED  what "sanitize" and "mps" run: NAME:PLAN each
#   TOOLS              the tools of compute-sanitizer
#   SECONDS_EACH       how long the contexts run
#   SECONDS_DELAYED    "delays" begins no more launches after so many seconds
#   SECONDS_TOOL       how long a tool may take
#   ARCH=emu           tries the script where there is no GPU
#
# STEPS=neighbours is a check of its own. For SECONDS_EACH some processes run kernels that trap, beside processes that do
# nothing wrong. No other work may be on that GPU.
#
# nvcc needs no GPU, so libraries can be built elsewhere: run STEPS=build ARCH=sm_90 there with the same commit, and name
# the OUT of that run in PREBUILT here. Of that folder only lib/NAME.PLAN.BUILD/{libNAME.so,sum} are needed.
set -uo pipefail
read -r up _ </proc/uptime
mkdir -p "$2/lib" "$2/log" "$2/models" "$2/rows"
models=$1 out=$2
source "$(dirname "$0")/gpu_common.sh"
steps=${STEPS:-delays contexts devices sanitize mps}
delayed=${DELAYED:-digits_lstm:rprogram:100000 sparse_8_short:rprogram:20000 group_8_short:clusters-8:20000 decoder:rprogram:20000}
sanitized=${SANITIZED:-chain_512:rprogram squeezenet1_1:rprogram digits_lstm:rprogram digits_attention:waves}
[ -n "${SANITIZED:-}" ] || sanitized+=" sparse_8_short:rprogram group_8_short:clusters-8 decoder:auto decoder:rprogram decoder:clusters-8 decoder:waves"
shared=${SHARED:-chain_512:rprogram digits_branchy:rprogram}
tools=${TOOLS:-memcheck racecheck synccheck}
plans=${PLANS:-rprogram}
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
rm -f "$out"/rows/*

row() { # FILE STEP KEY=VALUE… [FILE…]: a row of stress.json, and of the output
  local file=$out/rows/$1.json
  shift
  python3 "$root/bench/stress.py" "$@" >"$file" && python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
print(json.dumps({k: v for k, v in r.items() if k not in ("log", "hazards")}))' "$file"
}

dir() { # NAME PLAN BUILD
  echo "$out/lib/$1.$2.$3"
}

emit() { # NAME PLAN BUILD FLAGS…
  local name=$1 plan=$2 build=$3
  shift 3
  timeout 550 "$RAMMERC" compile "$(model "$name")" --target "$arch" --plan "$plan" -o "$(dir "$name" "$plan" "$build")" "$@" -q \
    >/dev/null 2>"$out/log/$name.$plan.$build.compile"
}

# Libraries for the sanitizer have line information, so that a report names the two lines of a hazard.
build() { # NAME PLAN BUILD
  [ -f "$(model "$1")" ] || return 0
  local flags='' here ready=${PREBUILT:-}/lib/$1.$2.$3
  here=$(dir "$1" "$2" "$3")
  case $3 in
    debug) flags=--debug ;;
    lines) flags=--code ;;
  esac
  [ "$arch" = emu ] && flags=${flags/--code/}
  if [ -f "$ready/lib$1.so" ] && emit "$1" "$2" "$3" --emit cu --offline; then
    cp "$ready/lib$1.so" "$here/"
    (cd "$here" && sha256sum --check --status "$ready/sum") && return
    echo "$1 $2 $3: other weights than those of the library at hand, building it"
  fi
  # shellcheck disable=SC2086
  emit "$1" "$2" "$3" --emit lib $flags || { echo "build FAILED: $1 $2: $(tail -n 2 "$out/log/$1.$2.$3.compile")" && return 1; }
  (cd "$here" && sha256sum "$1.weights" >sum)
}
export -f dir emit build

# Prints what the chosen steps run, one line NAME PLAN BUILD each.
wanted() {
  local x p
  case " $steps " in *" delays "* | *" neighbours "*) for x in $delayed; do IFS=: read -r n p _ <<<"$x" && echo "$n $p debug"; done ;; esac
  case " $steps " in *" contexts "* | *" devices "*) for p in $plans; do echo "digits_branchy $p release"; done ;; esac
  case " $steps " in *" sanitize "*) for x in $sanitized; do echo "${x/:/ } lines"; done ;; esac
  case " $steps " in *" mps "*) for x in $shared; do echo "${x/:/ } release"; done ;; esac
}

# vEUs sleep at other places in every launch. All launches must give exactly the results of the first.
delays() { # NAME PLAN LAUNCHES
  local here log=$out/log/$1.$2.delays done=0 status=0 start=$SECONDS files=()
  here=$(dir "$1" "$2" debug)
  [ -d "$here" ] || { row "1.$1" delays model="$1" plan="$2" failed="not built" && return; }
  while [ "$done" -lt "$3" ] && [ $status = 0 ] && [ $((SECONDS - start)) -lt "${SECONDS_DELAYED:-150}" ]; do
    local n=$(($3 - done < 10000 ? $3 - done : 10000))
    timeout 300 "$RAMMERC" verify "$here" --model "$(model "$1")" --repeat $n --delays $((done + 1)) --json >"$log.$done.json" 2>"$log"
    status=$?
    files+=("$log.$done.json")
    done=$((done + n))
  done
  row "1.$1" delays model="$1" plan="$2" exit=$status seconds=$((SECONDS - start)) "${files[@]}"
}

# The C program runs digits_branchy in two threads, each with a context and a stream of its own. In the step "devices" the
# second context is on another GPU, if there is one.
contexts() { # PLAN STEP FLAGS…
  local here text=$out/log/$2.$1 plan=$1 step=$2 status
  here=$(dir digits_branchy "$1" release)
  shift 2
  if ! cc -O2 -I"$here" "$root/testdata/cprogram/main.c" -o "$out/$step.$plan" -L"$here" -ldigits_branchy -lpthread -lm \
    "-Wl,-rpath,$here" 2>"$text"; then
    row "2.$step.$plan" "$step" plan="$plan" failed="not built"
    return
  fi
  timeout 300 "$out/$step.$plan" "$@" >"$text" 2>&1
  status=$?
  row "2.$step.$plan" "$step" plan="$plan" exit=$status "$text"
}

# A ring of weights has two mbarriers for each stage, which a loop initialises. The tools must be told how many there are.
sanitize() { # NAME PLAN TOOL
  local here log=$out/log/$1.$2.$3 status start=$SECONDS as="model=$1 plan=$2 tool=$3"
  local under="compute-sanitizer --print-limit 200 --num-cuda-barriers ${BARRIERS:-256}"
  here=$(dir "$1" "$2" lines)
  # shellcheck disable=SC2086
  [ -f "$(model "$1")" ] || { row "3.$1.$2.$3" sanitize $as skipped="there is no such model" && return; }
  # shellcheck disable=SC2086
  [ -d "$here" ] || { row "3.$1.$2.$3" sanitize $as failed="not built" && return; }
  timeout -k 5 "${SECONDS_TOOL:-150}" "$RAMMERC" run "$here" --random 1 -q \
    --run-under "$under --tool $3 --error-exitcode 9 --log-file $log" >"$log.run" 2>&1
  status=$?
  # First the pairs of source lines, then the addresses and threads of each hazard.
  if [ "$3" = racecheck ] && [ $status != 0 ] && [ $status != 124 ]; then
    timeout -k 5 60 "$RAMMERC" run "$here" --random 1 -q \
      --run-under "$under --tool racecheck --racecheck-report hazard --launch-count 1 --log-file $log.hazards" >"$log.hazards.run" 2>&1
  fi
  # shellcheck disable=SC2086
  row "3.$1.$2.$3" sanitize $as exit=$status seconds=$((SECONDS - start)) "$log"
}
export -f row sanitize

sanitize_all() {
  local x tool
  command -v compute-sanitizer >/dev/null || { row 3 sanitize skipped="there is no compute-sanitizer" && return; }
  [ "$gpus" -gt 1 ] && export CUDA_VISIBLE_DEVICES=1
  for x in $sanitized; do
    for tool in $tools; do echo "${x/:/ } $tool"; done
  done | xargs -P "${SANITIZE_AT_ONCE:-6}" -L 1 bash -c 'sanitize "$@"' _
}

# Starts an MPS daemon of its own, in folders of its own, and runs two processes under it: first both with all of the GPU,
# then one of them with half of it. An rProgram whose vEUs do not all find room must say so and run in waves, with the
# same results.
mps() {
  command -v nvidia-cuda-mps-control >/dev/null || { row 4 mps skipped="there is no nvidia-cuda-mps-control" && return; }
  local private x said
  private=$(mktemp -d /tmp/mps.XXXXXX) # short: sockets in it have short names
  export CUDA_MPS_PIPE_DIRECTORY=$private CUDA_MPS_LOG_DIRECTORY=$private/log
  mkdir "$private/log"
  trap 'echo quit -t 5 | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1' EXIT
  if ! said=$(timeout 20 nvidia-cuda-mps-control -d 2>&1); then
    row 4 mps skipped="the daemon does not start: $said"
    return
  fi
  # The daemon starts its server for the first process.
  x=${shared%% *}
  if ! timeout -k 5 60 "$RAMMERC" run "$(dir "${x%:*}" "${x#*:}" release)" --random 1 -q >"$out/log/mps.first" 2>&1; then
    row 4 mps skipped="no process runs under the daemon: $(tail -n 2 "$out/log/mps.first"); $(tail -n 3 "$private/log/server.log" 2>&1)"
    return
  fi
  for x in $shared; do tenants "${x%:*}" "${x#*:}" 100 100 && tenants "${x%:*}" "${x#*:}" 100 50; done
  echo quit -t 5 | timeout 20 nvidia-cuda-mps-control >"$out/log/mps.quit" 2>&1
  said=$?
  trap - EXIT
  for x in "$out"/log/mps.*.pending; do
    # shellcheck disable=SC2046
    row "4.$(basename "$x" .pending)" mps ended=$([ $said = 0 ] && echo true || echo false) $(cat "$x")
  done
  cp -r "$private/log" "$out/log/mps"
  rm -rf "$private"
}

tenants() { # NAME PLAN PERCENTAGE PERCENTAGE
  local here file=$out/log/mps.$1.$2.$3.$4 i pids=() files=() percentage
  here=$(dir "$1" "$2" release)
  for percentage in "$3" "$4"; do
    i=${#pids[@]}
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$percentage timeout -k 5 60 "$RAMMERC" verify "$here" --model "$(model "$1")" --repeat 3000 --json -q \
      >"$file.$i.json" 2>"$file.$i.json.err" &
    pids+=($!)
    files+=("$percentage")
  done
  for i in 0 1; do
    wait "${pids[$i]}"
    files[i]="${files[$i]}:$?:$file.$i.json"
  done
  echo "model=$1 plan=$2 ${files[*]}" >"$file.pending"
}

# Finds out whether a trap in one process ends the work of others. Four loops start processes that trap, again and
# again, beside three processes that wait and three with delayed launches of the first model of DELAYED.
neighbours() {
  local until=$((SECONDS + ${SECONDS_EACH:-60})) log=$out/log/neighbours n p here i k pids=()
  IFS=: read -r n p _ <<<"$delayed"
  here=$(dir "$n" "$p" debug)
  if ! ${NVCC:-nvcc} -O2 "-arch=$arch" "$root/bench/micro/neighbours.cu" -o "$out/neighbours" 2>"$log.nvcc"; then
    row 5.neighbours neighbours failed="not built"
    return
  fi
  for i in 1 2 3 4; do
    while [ $SECONDS -lt $until ]; do "$out/neighbours" trap; done >"$log.trap.$i" 2>&1 &
    pids+=($!)
  done
  for i in 1 2 3; do
    while [ $SECONDS -lt $((until - 5)) ]; do "$out/neighbours" wait 5; done >"$log.wait.$i" 2>&1 &
    pids+=($!)
    for ((k = i * 100000; SECONDS < until - 5; k += 2000)); do
      timeout 100 "$RAMMERC" verify "$here" --model "$(model "$n")" --repeat 2000 --delays $((k + 1)) --json -q 2>/dev/null | tr -d '\n'
      echo
    done >"$log.delays.$i" &
    pids+=($!)
  done
  wait "${pids[@]}"
  row 5.neighbours neighbours model="$n" plan="$p" "$log".{trap,wait,delays}.*
}

made=$(python3 "$root/bench/models.py" --list | python3 -c 'import json, sys; print(*json.load(sys.stdin))')
for n in $(wanted | cut -d' ' -f1 | sort -u); do
  case " $made " in *" $n "*) [ -f "$models/$n.onnx" ] || python3 "$root/bench/models.py" "$out/models" "$n" >/dev/null || exit 1 ;; esac
done
wanted_all=$steps
[ "$steps" = build ] && wanted_all="delays contexts devices sanitize mps"
steps=$wanted_all wanted | sort -u | xargs -P "$(nproc)" -L 1 bash -c 'build "$@"' _
echo "== build: $SECONDS s"
[ "$steps" = build ] && exit

for step in $steps; do
  case $step in
    delays) # the first with the contexts, the others where the sanitizer is
      device=0
      for x in $delayed; do
        IFS=: read -r n p k <<<"$x"
        (if [ "$gpus" -gt 1 ]; then export CUDA_VISIBLE_DEVICES=$device; fi && delays "$n" "$p" "$k") &
        device=1
      done
      ;;
    contexts) for p in $plans; do contexts "$p" contexts -s "${SECONDS_EACH:-60}" & done ;;
    devices)
      for p in $plans; do
        if [ "$gpus" -lt 2 ]; then
          row "2.devices.$p" devices plan="$p" skipped="one GPU"
        else
          contexts "$p" devices -s 10 -d 2 &
        fi
      done
      ;;
    sanitize) sanitize_all & ;;
    neighbours) neighbours & ;;
  esac
done
wait
echo "== at once: $SECONDS s"
case " $steps " in *" mps "*) (mps) ;; esac
echo "== all: $SECONDS s"
UP=$up TOOK=$SECONDS python3 "$root/bench/stress.py" collect "$out"
