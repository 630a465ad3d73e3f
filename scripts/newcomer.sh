#!/usr/bin/env bash
# Measures how long README takes a newcomer: in a clone, with empty caches of Go for builds and modules, it runs README's
# first command under "Try it", which compiles a model and verifies it. It fails if that takes more than 60 s, or prints
# other lines than README shows, whatever their figures.
#
#   scripts/newcomer.sh [REV]
#
# REV is what is cloned; HEAD by default. A machine with other work is slower than a newcomer's. So where the limit is
# passed, the time counts that the processors spent for it, divided among them: what it would take on a quiet machine if all
# of it ran side by side. A variable of the environment, LIMIT, is the number of seconds.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
limit=${LIMIT:-60}
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
eval "$command" >"$tmp/stdout" 2>"$tmp/stderr" || { cat "$tmp/stderr"; exit 1; }
end=$(now)
times >"$tmp/times" # in this shell: its second line is what children have taken, as 0m44.136s 0m7.403s
cpu=$(tail -n 1 "$tmp/times" | awk -F'[ms ]' '{ print 60 * $1 + $2 + 60 * $4 + $5 }')
grep -q '^verified on the emu engine' "$tmp/stderr" || { echo "nothing was verified:"; cat "$tmp/stderr"; exit 1; }
# shape leaves out the figures of lines, and lines that only slow machines print.
shape() { sed -E -e '/ so far$/d' -e 's/[0-9][0-9.e-]*( (ms|s|µs|KB|MB))?/#/g' -e 's/ +/ /g'; }
awk '/^## Try it/ { found = 1 } found && /^testdata/ { shown = 1 } shown && /^```/ { exit } shown' README.md | shape >"$tmp/shown"
diff "$tmp/shown" <(shape <"$tmp/stderr") || { echo "README shows other lines than its command prints"; exit 1; }
echo "$command"
awk -v a="$start" -v b="$cloned" -v c="$downloaded" -v d="$end" -v cpu="$cpu" -v n="$(nproc)" -v limit="$limit" 'BEGIN {
  printf "clone %.1f s, modules %.1f s, build, compile and verify %.1f s: %.1f s in all\n", b - a, c - b, d - c, d - a
  printf "processors spent %.1f s, which is %.1f s on each of %d\n", cpu, cpu / n, n
  took = d - a
  if (took > limit && cpu > 10 && cpu / n + (c - a) < took) took = cpu / n + (c - a)
  if (took > limit) { printf "more than %d s\n", limit; exit 1 }
}'
