#!/usr/bin/env bash
# Models, operators and plans in one run: what README's tables of them and the plots are made from.
#
#   scripts/gpu_results.sh MODELS OUT
#
# OUT gets precision/precision.json (scripts/gpu_precision.sh), families/FAMILY.json (scripts/gpu_families.sh),
# plans/plans.json and plans/plans.png (scripts/gpu_plans.sh), and what these print as precision.log, operators.log and
# plans.log. First everything is compiled, all at the same time; then models are timed, and operators and plans after them,
# or beside them on a second GPU where there is one.
#
# Variables of the environment, beside those of these scripts:
#
#   RAMMERC     the binary; by default it is built with go
#   TIMED       the models that are timed in fp32, tf32 and fp16
#   INDUCTOR    how many seconds torch.compile may take for all of them, 150 by default
#   FAMILIES    the families of operators, all by default
#   PLANS       the kinds of plan of gpu_plans.sh; 0 leaves plans out
#   COMPILING   how many seconds compiling operators and plans may take, 150 by default; what is there by then is timed
set -uo pipefail
mkdir -p "$2"
models=$1 out=$2
source "$(dirname "$0")/gpu_common.sh"
read -ra timed <<<"${TIMED:-alexnet bert_l2_b1_s128 bert_l2_b1_s512 bert_l4_s32 convnext_tiny deepspeech2 densenet121 efficientnet_b0 googlenet \
  gpt2_l2 inception_v3 lstm_tc mobilenet_v3_small nasnet_cifar regnet_y_400mf resnet18 resnet50 resnext29_16x64d seq2seq squeezenet1_1 \
  swin_t vgg11 vit_tiny_patch16_224 bert_l2_b8_s128 resnet50_b8 convnext_tiny_b8 resnet50_b32}"
read -ra families <<<"${FAMILIES:-gemm conv depthwise attention gemv}"
other=$(($(nvidia-smi -L | wc -l) > 1 ? 1 : 0)) # the GPU of operators and plans

# run SECONDS NICENESS SCRIPT…: on the GPU of operators and plans
run() {
  CUDA_VISIBLE_DEVICES=$other timeout "$1" nice -n "$2" "$root/scripts/${@:3}"
}
operators() { # SECONDS NICENESS STEPS
  STEPS=$3 run "$1" "$2" gpu_families.sh "$out/families" "${families[@]}" >>"$out/operators.log" 2>&1
}
plans() { # SECONDS NICENESS STEPS
  [ "${PLANS:-}" != 0 ] || return 0
  STEPS=$3 run "$1" "$2" gpu_plans.sh "$models" "$out/plans" >>"$out/plans.log" 2>&1
}

# The libraries of models are compiled before all else: what nvcc takes for them is recorded.
rm -f "$out/built" "$out/quiet"
{
  operators "${COMPILING:-150}" 5 "models build" &
  plans "${COMPILING:-150}" 12 build
  wait
  touch "$out/built"
} &
SIDES=${SIDES:-fp32 tf32 fp16} ROUNDS=${ROUNDS:-1} RUNS=${RUNS:-300} INDUCTOR=${INDUCTOR:-150} CUDA_VISIBLE_DEVICES=0 \
  BEFORE_TIMING="until [ -e '$out/built' ]; do sleep 0.5; done; touch '$out/quiet'" \
  "$root/scripts/gpu_precision.sh" "$models" "$out/precision" "${timed[@]}" >"$out/precision.log" 2>&1 &
precision=$!
until [ -e "$out/quiet" ] || ! kill -0 $precision 2>/dev/null; do sleep 0.5; done
echo "== everything is compiled: $SECONDS s"
[ "$other" = 0 ] && wait $precision
operators 200 0 time
plans 200 0 time
wait
echo "== everything is timed: $SECONDS s"
tail -n 12 "$out"/{operators,plans}.log 2>/dev/null
cat "$out/precision.log"
