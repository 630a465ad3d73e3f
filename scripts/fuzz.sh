#!/usr/bin/env bash
# Runs every fuzz target of the module in turn, each for the given time (default 10m).
# What a target finds lies in testdata/fuzz of its package afterwards.
#
# When an input reaches new code, Go first looks for a shorter one that does so too. By default it may look for 60 s
# for each such input, and executes nothing else meanwhile; for a target whose inputs are long texts, such as
# FuzzParsePlan, that can be most of the time. One second is enough to shorten most inputs.
#
# The last line of each target says how many inputs were executed, and how many a second on average.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
minimize=1s
go=${GO:-go}
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# rate FILE: the totals of the last progress line of `go test -fuzz` in the file. Such a line reads
#   fuzz: elapsed: 12s, execs: 325017 (10833/sec), new interesting: 11 (total: 202)
# where the rate in brackets is that of the latest three seconds alone.
rate() {
  awk '/^fuzz: elapsed: .* execs: / {
         at = $3; executions = $5
         sub(/,$/, "", at)
       }
       END {
         if (at == "") { print "no executions"; exit }
         seconds = 0; rest = at
         while (match(rest, /^[0-9.]+[hms]/)) {
           part = substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
           unit = substr(part, length(part))
           seconds += part * (unit == "h" ? 3600 : unit == "m" ? 60 : 1)
         }
         printf "%d executions in %s, %.0f a second\n", executions, at, (seconds > 0 ? executions / seconds : 0)
       }' "$1"
}

for package in $("$go" list ./...); do
  targets=$("$go" test -list '^Fuzz' "$package" | grep '^Fuzz') || continue
  for target in $targets; do
    echo "== $package $target, $time"
    "$go" test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime "$minimize" | tee "$log" ||
      status=1
    echo "== $package $target: $(rate "$log")"
  done
done
exit $status
