#!/usr/bin/env bash
# Formats the project's C++ as .clang-format says. With --check it changes nothing, and fails where something would change.
# Versions of clang-format differ in what they do, so it takes the one that install_tools.sh installs, or $CLANG_FORMAT.
# Without it nothing is formatted or checked, and it says so.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${CLANG_FORMAT:-.tools/format/clang_format/data/bin/clang-format}
if [ ! -x "$tool" ]; then
  echo "skipped: no clang-format at $tool; scripts/install_tools.sh .tools installs it"
  exit 0
fi
flags=(-i)
[ "${1:-}" = --check ] && flags=(--dry-run --Werror)
# What schema/generate writes is compared with what it would write.
git ls-files -z -- '*.cuh' '*.cu' '*.h' '*.cc' ':!codegen/rt/schema' | xargs -0 "$tool" --style=file "${flags[@]}"
long=$(git ls-files -- '*.cuh' '*.cu' '*.h' '*.cc' ':!codegen/rt/schema' |
  xargs awk '{ line = $0; gsub(/[\200-\277]/, "", line) } length(line) > 120 { print FILENAME ":" FNR ": longer than 120 columns" }')
if [ -n "$long" ]; then
  echo "$long"
  exit 1
fi
