#!/usr/bin/env bash
# Lists functions that nothing reaches, and fails if there are any. A function that only tests reach counts, unless its
# package exists for tests alone: what no command needs is either dead or belongs into a test's file.
set -euo pipefail
cd "$(dirname "$0")/.."
for_tests='^(internal/(golden|difftest|conformance|hostile|stencil|testbuild|systemtest)|vdevice/vdevicetest|profiler/measure/measuretest)/'
# grep fails when it finds nothing, which is what is wanted.
dead=$({ go tool deadcode ./... | grep -Ev "$for_tests"; go tool deadcode -test ./...; } || true)
[ -z "$dead" ] || { sort -u <<<"$dead"; exit 1; }
