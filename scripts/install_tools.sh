#!/usr/bin/env bash
# Installs what tests use beyond Go and a C++ compiler into the folder given: nvcc (to compile emitted
# sources; no GPU needed) and onnxruntime (an oracle). Both are optional: tests that lack them skip.
set -uo pipefail
dir=$1
mkdir -p "$dir"
cuda=13.0

if [ ! -x "$dir/nvcc/nvidia/cu13/bin/nvcc" ]; then
  python3 -m pip install -q --no-warn-script-location --disable-pip-version-check --root-user-action=ignore \
    --target "$dir/nvcc" \
    "nvidia-cuda-nvcc==$cuda.*" "nvidia-cuda-crt==$cuda.*" "nvidia-cuda-runtime==$cuda.*" \
    "nvidia-cuda-cccl==$cuda.*" "nvidia-nvvm==$cuda.*" || echo "nvcc could not be installed"
fi
if [ ! -x "$dir/oracle/bin/python3" ]; then
  python3 -m venv "$dir/oracle" &&
    "$dir/oracle/bin/python3" -m pip install -q --disable-pip-version-check numpy onnx onnxruntime ||
    echo "onnxruntime could not be installed"
fi
command -v c++ >/dev/null || { apt-get update -qq && apt-get install -y -qq g++; }
command -v c++ >/dev/null
