#!/usr/bin/env bash
# Installs tools that tests use into the folder given: nvcc, which compiles emitted sources and needs no GPU, onnxruntime,
# with which results are compared, tree-sitter, which parses kernels for `rammerc convert`, and clang-format. All of them are optional: a test that lacks one is skipped and says
# why. If there is no C++ compiler, the script tries to install one, and fails if it cannot.
#
# After it, NVCC is DIR/nvcc/nvidia/cu13/bin/nvcc, and DIR/oracle/bin/python3 is a Python with onnxruntime and
# tree-sitter.
set -uo pipefail
dir=$1
mkdir -p "$dir"
cuda=13.0
clang_format=19.1.7
pip=(python3 -m pip install -q --no-warn-script-location --disable-pip-version-check --root-user-action=ignore)

quietly_apt() {
  command -v apt-get >/dev/null || return 1
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  "${sudo[@]}" apt-get update -qq >/dev/null && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

install_nvcc() {
  "${pip[@]}" --target "$dir/nvcc" \
    "nvidia-cuda-nvcc==$cuda.*" "nvidia-cuda-crt==$cuda.*" "nvidia-cuda-runtime==$cuda.*" \
    "nvidia-cuda-cccl==$cuda.*" "nvidia-nvvm==$cuda.*"
}

# Makes a virtual environment if python3 can, otherwise a folder of packages and a script that runs python3 with it.
install_oracle() {
  local packages=(numpy onnx onnxruntime)
  if python3 -m venv "$dir/oracle" 2>/dev/null &&
    "$dir/oracle/bin/python3" -m pip install -q --disable-pip-version-check "${packages[@]}"; then
    return 0
  fi
  rm -rf "$dir/oracle"
  mkdir -p "$dir/oracle/bin"
  "${pip[@]}" --target "$dir/oracle/packages" "${packages[@]}" || return 1
  printf '#!/bin/sh\nPYTHONPATH="%s${PYTHONPATH:+:$PYTHONPATH}" exec python3 "$@"\n' "$dir/oracle/packages" >"$dir/oracle/bin/python3"
  chmod +x "$dir/oracle/bin/python3"
}

install_parser() {
  local packages=("tree-sitter==0.26.*" "tree-sitter-cuda==0.21.*")
  if [ -d "$dir/oracle/packages" ]; then
    "${pip[@]}" --target "$dir/oracle/packages" "${packages[@]}"
  else
    "$dir/oracle/bin/python3" -m pip install -q --disable-pip-version-check "${packages[@]}"
  fi
}

parses() { "$dir/oracle/bin/python3" -c 'import tree_sitter, tree_sitter_cuda' 2>/dev/null; }

works() { "$dir/oracle/bin/python3" -c 'import onnx, onnxruntime' 2>/dev/null; }

command -v c++ >/dev/null || quietly_apt g++ || echo "g++ could not be installed"
if command -v python3 >/dev/null && ! python3 -m pip --version >/dev/null 2>&1; then
  quietly_apt python3-pip || echo "pip could not be installed"
fi
if [ ! -x "$dir/format/clang_format/data/bin/clang-format" ]; then
  "${pip[@]}" --target "$dir/format" "clang-format==$clang_format" || echo "clang-format could not be installed"
fi
if [ ! -x "$dir/nvcc/nvidia/cu13/bin/nvcc" ]; then
  install_nvcc || echo "nvcc could not be installed"
fi
if ! works; then
  install_oracle && works || {
    rm -rf "$dir/oracle"
    echo "onnxruntime could not be installed"
  }
fi
if works && ! parses; then
  install_parser && parses || echo "tree-sitter could not be installed"
fi
command -v c++ >/dev/null
