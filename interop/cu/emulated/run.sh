#!/usr/bin/env bash
# emulated/run.sh COMMAND…: runs a command of Go with the driver for the CPU emulator, for machines without GPUs:
#
#   ./emulated/run.sh go test ./...
#
# It takes CUDA's headers from $CUDA_HOME/include, from beside $NVCC, or from /usr/local/cuda/include, and a C++ compiler
# from $CXX.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for include in "${CUDA_HOME:-/none}/include" "$(dirname "${NVCC:-/none/bin/nvcc}")/../include" /usr/local/cuda/include; do
  [ -f "$include/cuda.h" ] && break
done
if [ ! -f "$include/cuda.h" ]; then
  echo "$0: no cuda.h was found; set CUDA_HOME" >&2
  exit 4
fi
driver=$here/.build # always the same, because Go's cache has programs by their flags
mkdir -p "$driver"
"${CXX:-c++}" -std=c++20 -O1 -g -fPIC -shared -I "$here/../cuda12" -I "$include" "$here"/*.cc \
  -o "$driver/libcuda.so.1" -Wl,-soname,libcuda.so.1 -ldl
ln -sf libcuda.so.1 "$driver/libcuda.so"
export CGO_ENABLED=1 CGO_CFLAGS="-O2 -I $here/../cuda12 -I $include" CGO_LDFLAGS="-L $driver"
export LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$@"
