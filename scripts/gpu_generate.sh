#!/usr/bin/env bash
# Times whole answers of a decoder of GPT-2's size on the GPU at hand: 128 tokens behind a prompt of 16, chosen greedily
# and with four beams, by libraries of --generate as rPrograms and in waves, by PyTorch with a CUDA graph for each token,
# and by Hugging Face's generate where transformers is found; and says what an answer launches and copies.
#
#   scripts/gpu_generate.sh OUT
#
# OUT gets generate.json (bench/results/h200-generate.json) and logs. RAMMERC names the binary (default: built with go),
# ARCH the architecture (default: that of this machine's GPU), and PRECISIONS those to compile (default: fp32 and fp16).
# STEPS says what to do: build, time, or both (default). SIDES names the others to ask, "pytorch.float32" and so on
# (default: all that bench/generate_peers.py has; to compile Hugging Face's takes minutes).
set -uo pipefail
mkdir -p "$1/log" "$1/models"
out=$1
source "$(dirname "$0")/gpu_common.sh"
read -ra precisions <<<"${PRECISIONS:-fp32 fp16}"
libraries=()
for precision in "${precisions[@]}"; do
  for plan in rprogram waves waves_beam4; do libraries+=("$out/gpt2_${precision}_$plan"); done
done
if [[ ${STEPS:-build time} == *build* ]]; then
  [ -f "$out/models/gpt2.onnx" ] || python3 "$root/bench/generate.py" model "$out/models/gpt2.onnx" || exit 1
  for library in "${libraries[@]}"; do
    name=$(basename "$library")
    IFS=_ read -r _ precision plan search <<<"$name"
    "$RAMMERC" compile "$out/models/gpt2.onnx" --name "$name" --target "$arch" --offline --plan "$plan" \
      --precision "$precision" --generate "$([ "$search" = beam4 ] && echo beam=4 || echo greedy)" --max-tokens 144 \
      --emit lib -o "$library" --json \
      >"$out/$name.compile.json" 2>"$out/log/$name.compile" &
  done
  wait
fi
[[ ${STEPS:-build time} != *time* ]] || python3 "$root/bench/generate.py" time "$out" "${libraries[@]}"
