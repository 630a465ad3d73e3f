# shellcheck shell=bash
# What the scripts gpu_*.sh share. They source it when the folder out is there, and models, if they take models from one.
# It makes both paths absolute and exports them for functions that xargs calls.
#
# RAMMERC names the binary (default: built with go), and ARCH the architecture to compile for (default: that of this
# machine's GPU; sm_90 where there is none). The caches of rammerc are in OUT, so that nothing comes from earlier runs.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$(cd "$out" && pwd) || exit 1
[ -z "${models:-}" ] || models=$(cd "$models" && pwd) || exit 1
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')
arch=${ARCH:-sm_${capability:-90}}
XDG_CACHE_HOME=$out/cache
export RAMMERC root out models arch XDG_CACHE_HOME

model() { # NAME: its file, in the folder of models or among those that were made for this run
  if [ -f "$models/$1.onnx" ]; then echo "$models/$1.onnx"; else echo "$out/models/$1.onnx"; fi
}

dims() { # NAME: flags that bind all symbolic dims of a model to small numbers
  "$RAMMERC" inspect "$(model "$1")" --json 2>/dev/null | python3 -c '
import json, sys
for d in json.load(sys.stdin)["dims"] or []:
    print("--dim", d + "=" + ("32" if d.startswith("seq") else "1"))' 2>/dev/null
}

export_missing() { # NAME…: models that are not there are exported from PyTorch, if bench/peers.py knows them
  local missing=() n
  for n in "$@"; do [ -f "$(model "$n")" ] || missing+=("$n"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  printf '%s\n' "${missing[@]}" | timeout 300 xargs -P 8 -n 2 python3 "$root/bench/peers.py" --export "$out/models" \
    >"$out/log/export" 2>&1 || tail -n 3 "$out/log/export"
}
export -f model dims
