#!/usr/bin/env bash
# Builds both services for a model and tests them under load.
#
#   examples/services/load_test.sh [MODEL]
#
# MODEL is an ONNX file whose inputs are float32 and whose first dim is called batch; by default it is one of the bundled
# ones. Variables of the environment:
#
#   RAMMERC    the binary; by default it is built with go
#   SERVICES   which are tested; "go cpp" by default
#   SECONDS_EACH   how long each is sent 90 % of what it can answer; 600 by default
#   TARGET     what the model is compiled for; emu by default
#   OUT        folder for the results; .build/results by default
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
model=$(realpath "${1:-$root/testdata/models/digits_branchy_dyn.onnx}")
build=$PWD/.build
out=${OUT:-$build/results}
mkdir -p "$build" "$out"
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$build/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc)
fi
"$RAMMERC" compile "$model" --name model --dim batch=1,4,16 --target "${TARGET:-emu}" -o "$build/model" -q >/dev/null
(cd load && go build -o "$build/load" .)
status=0
for service in ${SERVICES:-go cpp}; do
  case $service in
    go)
      (cd go && go build -o "$build/service-go" .)
      command=("$build/service-go")
      ;;
    cpp)
      cmake -S cpp -B "$build/cpp" -Dmodel_DIR="$build/model/cmake" >/dev/null
      cmake --build "$build/cpp" >/dev/null
      command=("$build/cpp/service")
      ;;
  esac
  "$build/load" -seconds "${SECONDS_EACH:-600}" -out "$out/$service.json" -- "${command[@]}" || status=1
done
exit $status
