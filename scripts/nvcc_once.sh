#!/usr/bin/env bash
# Stands in for nvcc, as NVCC=scripts/nvcc_once.sh, where the same sources are compiled again and again: what `nvcc -c` makes
# of them is kept in the folder NVCC_KEPT and copied from there the next time. REAL_NVCC names nvcc (default: in PATH);
# it must find CUDA's libraries by itself, as that of the toolkit does.
set -uo pipefail
real=${REAL_NVCC:-nvcc}
case " $* " in
  *" -I. "*) exec "$real" "$@" ;; # parts of a program that share a folder, which collect keeps by itself
  *" -c "*) ;;
  *) exec "$real" "$@" ;;
esac

# rammerc compiles in a folder of its own, where nvcc leaves an object and what it made on the way there. Lines that are
# comments make no difference: they name the version of rammerc and the predicted times.
hash=$({ printf '%s\n' "$@" && cat ./*.cu ./*.h; } | sed "s|$PWD||g; s|^ *//.*||; s|^ \*.*||" | sha256sum | cut -c 1-32)
kept=$NVCC_KEPT/$hash
if [ ! -d "$kept" ]; then
  new=$(mktemp -d "$NVCC_KEPT/new.XXXXXX")
  if ! "$real" "$@" >"$new/output" 2>&1; then
    cat "$new/output"
    rm -r "$new"
    exit 1
  fi
  cp ./*.o ./*.cubin "$new"
  mv -T "$new" "$kept" 2>/dev/null || rm -r "$new" # another process has just kept the same
fi
cp "$kept"/*.o "$kept"/*.cubin .
cat "$kept/output"
