#!/usr/bin/env bash
# Builds the services for a model and tests them under load.
#
#   examples/services/load_test.sh [MODEL]
#
# MODEL is an ONNX file whose inputs are float32 and whose first dim is called batch; by default it is one of the
# bundled ones. Variables of the environment:
#
#   RAMMERC    the binary; by default it is built with go
#   SERVICES   which are tested, of go, cpp and triton; "go cpp" by default
#   TRITONSERVER   for triton: the server's program. The PyPI package nvidia-pytriton has one, which runs without a GPU,
#              in pytriton/tritonserver/bin
#   PORT       where the services listen; 8080 by default. Triton's metrics are at the port behind it
#   SECONDS_EACH   how long each is sent 90 % of what it can answer; 600 by default
#   TARGET     what the model is compiled for; emu by default
#   OUT        folder for the results; .build/results by default
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
model=$(realpath "${1:-$root/testdata/models/digits_branchy_dyn.onnx}")
build=$PWD/.build
out=${OUT:-$build/results}
port=${PORT:-8080}
mkdir -p "$build" "$out"
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$build/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc)
fi
"$RAMMERC" compile "$model" --name model --dim batch=1,4,16 --target "${TARGET:-emu}" -o "$build/model" -q >/dev/null
(cd load && go build -o "$build/load" .)
status=0
for service in ${SERVICES:-go cpp}; do
  flags=()
  case $service in
    go)
      (cd go && go build -o "$build/service-go" .)
      command=("$build/service-go" -address "127.0.0.1:$port")
      ;;
    cpp)
      cmake -S cpp -B "$build/cpp" -Dmodel_DIR="$build/model/cmake" >/dev/null
      cmake --build "$build/cpp" >/dev/null
      command=("$build/cpp/service" --port "$port")
      ;;
    triton)
      cmake -S ../triton -B "$build/triton" -DTRITON_INCLUDE="${TRITON_INCLUDE:-}" >/dev/null
      cmake --build "$build/triton" --target triton_rammerc >/dev/null
      rm -rf "$build/repository" "$build/backends"
      mkdir -p "$build/repository/model/1" "$build/backends/rammerc"
      cp "$build/triton/libtriton_rammerc.so" "$build/backends/rammerc/"
      cp "$build/model/libmodel.so" "$build/model/model.weights" "$build/repository/model/1/"
      cp ../triton/config.pbtxt "$build/repository/model/"
      flags=(-name triton -triton model -metrics "http://127.0.0.1:$((port + 1))/metrics")
      command=("${TRITONSERVER:?names the program of the server}" "--model-repository=$build/repository"
        "--backend-directory=$build/backends" --http-address=127.0.0.1 "--http-port=$port"
        "--metrics-port=$((port + 1))" --allow-grpc=false --log-info=false --log-warning=false)
      ;;
  esac
  "$build/load" -seconds "${SECONDS_EACH:-600}" \
    -address "127.0.0.1:$port" "${flags[@]}" -out "$out/$service.json" -- "${command[@]}" || status=1
done
exit $status
