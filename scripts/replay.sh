#!/usr/bin/env bash
# Shows what a change does to emitted programs. It builds rammerc at REV and from the working tree, compiles every bundled
# model with both for the emulator and for sm_90, and compares sources, plans and weights. No GPU is needed, because the
# cost model chooses plans. The exit status is 1 when something differs.
#
#   scripts/replay.sh [REV] [MODEL.onnx…]      REV defaults to HEAD
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
rev=${1:-HEAD}
shift $(($# > 0 ? 1 : 0))
go=${GO:-go}
tmp=$(mktemp -d)
cleanup() {
  git -C "$root" worktree remove --force "$tmp/tree" 2>/dev/null || true
  rm -rf "$tmp"
}
trap cleanup EXIT

git -C "$root" worktree add --quiet --detach "$tmp/tree" "$rev"
# Without stamps of version control, because the version is part of what is emitted.
(cd "$tmp/tree" && "$go" build -buildvcs=false -o "$tmp/old" ./cmd/rammerc)
(cd "$root" && "$go" build -buildvcs=false -o "$tmp/new" ./cmd/rammerc)

models=("$@")
if [ ${#models[@]} -eq 0 ]; then
  models=("$root"/testdata/models/*.onnx)
fi
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx)
  flags=()
  case $name in *_dyn) flags=(--dim batch=1) ;; esac
  for target in emu sm_90; do
    for side in old new; do
      if ! "$tmp/$side" compile "$model" -q --offline --target "$target" --emit cu "${flags[@]}" \
        -o "$tmp/$side.out/$target/$name" >/dev/null 2>"$tmp/$side.err"; then
        mkdir -p "$tmp/$side.out/$target/$name"
        cp "$tmp/$side.err" "$tmp/$side.out/$target/$name/refused.txt"
      fi
    done
  done
done

if diff -r -u "$tmp/old.out" "$tmp/new.out" >"$tmp/diff"; then
  echo "replay: no differences to $rev in ${#models[@]} models"
  exit 0
fi
sed "s|$tmp/||g" "$tmp/diff"
echo "replay: $(diff -r -q "$tmp/old.out" "$tmp/new.out" | wc -l) files differ from $rev"
exit 1
