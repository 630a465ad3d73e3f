#!/usr/bin/env bash
# Runs every fuzz target of the module in turn, each for the given time (default 10m).
# What a target finds lies in testdata/fuzz of its package afterwards.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
go=${GO:-go}
status=0

for package in $("$go" list ./...); do
  targets=$("$go" test -list '^Fuzz' "$package" | grep '^Fuzz') || continue
  for target in $targets; do
    echo "== $package $target, $time"
    "$go" test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" || status=1
  done
done
exit $status
