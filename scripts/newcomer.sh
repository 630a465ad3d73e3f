#!/usr/bin/env bash
# Measures how long README takes a newcomer: in a clone, with empty caches of Go for builds and modules, it runs README's
# first command under "Try it", which compiles a model and verifies it. It fails if that takes more than 60 s, or prints
# other lines than README shows, whatever their figures.
#
#   scripts/newcomer.sh [REV]
#
# REV is what is cloned; HEAD by default. A machine with other work is slower than a newcomer's. So where the limit is
# passed, the time counts that the processors spent for it, divided among them: what it would take on a quiet machine if all
# of it ran side by side. Processors differ, too, and so does what one of them does in a second while its neighbours work.
# Where those packages of Go's standard library that rammerc needs take longer to build than the limit was set for, it is
# longer by as much. A variable of the environment, LIMIT, is the number of seconds, and STANDARD how many of a processor
# these packages take.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
limit=${LIMIT:-60}
standard=${STANDARD:-37}
tmp=$(mktemp -d)
clean_up() {
  chmod -R u+w "$tmp" # Go's cache of modules is read-only
  rm -rf "$tmp"
}
trap clean_up EXIT

now() { date +%s.%N; }
unset GOFLAGS
# Where there is no network, modules come from the machine's own cache.
GOPROXY="$(go env GOPROXY)|file://$(go env GOMODCACHE)/cache/download"
export GOPROXY GOCACHE=$tmp/build GOMODCACHE=$tmp/modules
start=$(now)
git clone -q "$root" "$tmp/clone"
cd "$tmp/clone"
git checkout -q "${1:-$(git -C "$root" rev-parse HEAD)}"
cloned=$(now)
command=$(awk '/^## Try it/ { found = 1 } found && /^go run/ { print; exit }' README.md)
go list -deps ./cmd/rammerc >/dev/null # downloads the modules that it needs
downloaded=$(now)
# spent: the seconds that processors have spent for commands of this shell; the second line of times has them, as
# 0m44.136s 0m7.403s.
spent() {
  times >"$tmp/times"
  tail -n 1 "$tmp/times" | awk -F'[ms ]' '{ print 60 * $1 + $2 + 60 * $4 + $5 }'
}
spent >"$tmp/before" # in this shell, as those below: a subshell has spent nothing
go build $(go list -deps -f '{{if .Standard}}{{.ImportPath}}{{end}}' ./cmd/rammerc)
spent >"$tmp/after"
library=$(paste "$tmp/before" "$tmp/after" | awk '{ print $2 - $1 }')
eval "$command" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; exit 1; }
end=$(now)
spent >"$tmp/after"
cpu=$(cat "$tmp/after")
grep -q '^verified on the emu engine' "$tmp/stderr" || { echo "nothing was verified:"; cat "$tmp/stderr"; exit 1; }
# shape leaves out the figures of lines, and lines that only slow machines print.
shape() { sed -E -e '/ so far$/d' -e 's/[0-9][0-9.e-]*( (ms|s|µs|KB|MB))?/#/g' -e 's/ +/ /g'; }
awk '/^## Try it/ { found = 1 } found && /^testdata/ { shown = 1 } shown && /^```/ { exit } shown' README.md | shape >"$tmp/shown"
diff "$tmp/shown" <(shape <"$tmp/stderr") || { echo "README shows other lines than its command prints"; exit 1; }
echo "$command"
awk -v a="$start" -v b="$cloned" -v c="$downloaded" -v d="$end" -v cpu="$cpu" -v n="$(nproc)" -v limit="$limit" \
  -v library="$library" -v standard="$standard" 'BEGIN {
  printf "clone %.1f s, modules %.1f s, build, compile and verify %.1f s: %.1f s in all\n", b - a, c - b, d - c, d - a
  printf "processors spent %.1f s, which is %.1f s on each of %d\n", cpu, cpu / n, n
  printf "the standard library took %.1f s of them, where the limit is for %d\n", library, standard
  took = d - a
  if (library > standard) limit *= library / standard
  if (took > limit && cpu > 10 && cpu / n + (c - a) < took) took = cpu / n + (c - a)
  if (took > limit) { printf "%.1f s are more than %.1f\n", took, limit; exit 1 }
}'
