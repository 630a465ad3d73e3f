#!/usr/bin/env bash
# Runs every fuzz target of the module in turn, each for the given time (default 10m), or with TOTAL=SECONDS in the
# environment each for its share of that. ONLY=PATTERN picks targets by "package Name", such as 'ir/onnx FuzzNodes$',
# and PACKAGES says where they are looked for (default: everywhere).
# What a target finds lies in testdata/fuzz of its package afterwards.
#
# When an input reaches new code, Go first looks for a shorter one that does so too. By default it may look for 60 s
# for each such input, and executes nothing else meanwhile; for a target whose inputs are long texts, such as
# FuzzParsePlan, that can be most of the time. One second is enough to shorten most inputs.
#
# The last line of each target says how many inputs were executed, how many a second on average, and how long none
# ended. If that is STALL seconds or more (default 30), the target has stalled, and the script fails.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
minimize=1s
stall=${STALL:-30}
go=${GO:-go}
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# rate FILE: the totals of the progress lines of `go test -fuzz` in the file. Such a line reads
#   fuzz: elapsed: 12s, execs: 325017 (10833/sec), new interesting: 11 (total: 202)
# where the rate in brackets is that of the latest three seconds alone. While the corpus is executed, a line tells of
# "gathering baseline coverage: 17/202 completed" instead.
rate() {
  awk -v stall="$stall" '
       function seconds(text,    sum, part, unit) {
         sum = 0
         while (match(text, /^[0-9.]+[hms]/)) {
           part = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1)
           unit = substr(part, length(part))
           sum += part * (unit == "h" ? 3600 : unit == "m" ? 60 : 1)
         }
         return sum
       }
       /^fuzz: elapsed: / {
         at = $3; sub(/,$/, "", at); now = seconds(at)
         done = $4 == "execs:" ? $5 : $4 " " $7
         if ($4 == "execs:") executions = $5
         if (done != before) { before = done; since = now }
         if (now - since > longest) longest = now - since
       }
       END {
         if (now == 0) { print "no executions"; exit 1 }
         printf "%d executions in %s, %.0f a second, none for %d s at most\n", executions, at, executions / now, longest
         if (executions == 0 || longest >= stall) { print "STALLED"; exit 1 }
       }' "$1"
}

# out_of_time FILE: whether a run of `go test -fuzz` failed for nothing but the end of its time. Go reports that so now and
# then, where the time ends while a worker is at an input; what fails for an input says where it wrote that.
out_of_time() {
  grep -q '^ *context deadline exceeded$' "$1" && ! grep -q 'Failing input written to' "$1"
}

targets=()
for package in $("$go" list ${PACKAGES:-./...}); do
  for target in $("$go" test -list '^Fuzz' "$package" | grep '^Fuzz'); do
    [[ "$package $target" =~ ${ONLY:-.} ]] && targets+=("$package $target")
  done
done
[ "${#targets[@]}" -gt 0 ] || { echo "there is no such fuzz target"; exit 1; }
if [ -n "${TOTAL:-}" ]; then
  time=$((TOTAL / ${#targets[@]}))s
fi

for line in "${targets[@]}"; do
  read -r package target <<<"$line"
  echo "== $package $target, $time"
  "$go" test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime "$minimize" | tee "$log" ||
    out_of_time "$log" || status=1
  result=$(rate "$log") || status=1
  echo "== $package $target: $result"
done
exit $status
