#!/usr/bin/env bash
# What would show a missing wait, barrier or fence on a machine with a GPU: many launches in which vEUs
# sleep at random, two contexts on two streams for a while, on two GPUs if there are, and
# compute-sanitizer.
#
#   scripts/gpu_stress.sh MODELS OUT
#
# MODELS holds X.onnx files with their weights, OUT gets stress.json and logs. RAMMERC names the binary
# (default: built with go). STEPS chooses among the steps below; DELAYED, SANITIZED and PLANS are the models
# and plans they take, TOOLS compute-sanitizer's, REPEATS how many launches, SECONDS_EACH how long the contexts
# run. The exit status is 1 when something differs. ARCH=emu tries the script where there is no GPU.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
models=$1
mkdir -p "$2/lib" "$2/log" "$2/models"
out=$(cd "$2" && pwd)
steps=${STEPS:-delays contexts devices sanitize}
repeats=${REPEATS:-100000}
if [ -z "${RAMMERC:-}" ]; then
  RAMMERC=$out/rammerc
  (cd "$root" && go build -o "$RAMMERC" ./cmd/rammerc) || exit 1
fi
arch=${ARCH:-sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')}
export XDG_CACHE_HOME=$out/cache
: >"$out/stress.jsonl"

model() { # NAME: the file, one of bench/models.py's is made
  if [ -f "$models/$1.onnx" ]; then
    echo "$models/$1.onnx"
    return
  fi
  [ -f "$out/models/$1.onnx" ] || python3 "$root/bench/models.py" "$out/models" "$1" || return 1
  echo "$out/models/$1.onnx"
}

build() { # NAME PLAN TAG FLAGS…: a library in OUT/lib/NAME.PLAN.TAG
  local name=$1 plan=$2 tag=$3 file
  shift 3
  file=$(model "$name") || return 1
  timeout 550 "$RAMMERC" compile "$file" --target "$arch" --plan "$plan" --emit lib -o "$out/lib/$name.$plan.$tag" "$@" -q \
    >/dev/null 2>"$out/log/$name.$plan.$tag.compile" ||
    { echo "build FAILED: $name $plan: $(tail -n 2 "$out/log/$name.$plan.$tag.compile")" && return 1; }
}

result() { # a line of stress.jsonl, and of the output
  echo "$1" | tee -a "$out/stress.jsonl"
}

# Every launch draws sleeps of its own; all of them must give the bits of the first.
delays() { # NAME PLAN
  local dir=$out/lib/$1.$2.debug log=$out/log/$1.$2.delays status start=$SECONDS
  build "$1" "$2" debug --debug || { result "{\"step\": \"delays\", \"model\": \"$1\", \"plan\": \"$2\", \"ok\": false}"; return; }
  timeout 1200 "$RAMMERC" verify "$dir" --model "$(model "$1")" --repeat "$repeats" --delays 1 --json >"$log.json" 2>"$log"
  status=$?
  result "$(python3 - "$log.json" "$1" "$2" "$status" $((SECONDS - start)) <<'END'
import json, sys
file, model, plan, status, seconds = sys.argv[1:]
try:
    r = json.load(open(file))
except ValueError:
    r = {}
ok = status == "0" and r.get("repeats_differing") == 0
print(json.dumps({"step": "delays", "model": model, "plan": plan, "launches": r.get("repeats"),
                  "differing": r.get("repeats_differing"), "exit": int(status), "seconds": int(seconds), "ok": ok}))
END
)"
}

# The C program runs digits_branchy in two threads, each with a context and a stream of its own.
contexts() { # PLAN
  local dir=$out/lib/digits_branchy.$1.release text status
  build digits_branchy "$1" release || { result "{\"step\": \"contexts\", \"plan\": \"$1\", \"ok\": false}"; return; }
  cc -O2 -I"$dir" "$root/testdata/cprogram/main.c" -o "$out/cprogram" -L"$dir" -ldigits_branchy -lpthread -lm "-Wl,-rpath,$dir" || return
  text=$(timeout 600 "$out/cprogram" -s "${SECONDS_EACH:-60}" 2>&1)
  status=$?
  result "{\"step\": \"contexts\", \"plan\": \"$1\", \"exit\": $status, \"says\": \"$(echo "$text" | tr '\n"' ';.')\", \"ok\": $([ $status = 0 ] && echo true || echo false)}"
}

# The same program with its second context on another GPU, where there is one.
devices() { # PLAN
  local text status
  if [ "$(nvidia-smi --list-gpus 2>/dev/null | wc -l)" -lt 2 ]; then
    result "{\"step\": \"devices\", \"plan\": \"$1\", \"skipped\": \"one GPU\", \"ok\": true}"
    return
  fi
  [ -x "$out/cprogram" ] || SECONDS_EACH=1 contexts "$1"
  text=$(timeout 120 "$out/cprogram" -s 5 -d 2 2>&1)
  status=$?
  result "{\"step\": \"devices\", \"plan\": \"$1\", \"exit\": $status, \"says\": \"$(echo "$text" | tr '\n"' ';.')\", \"ok\": $([ $status = 0 ] && echo true || echo false)}"
}

# Libraries keep line information, so that a report says which two lines of source it is about. A ring of
# weights has two mbarriers a stage, made in a loop; the tools must be told how many to expect.
sanitizer="compute-sanitizer --print-limit 200 --num-cuda-barriers ${BARRIERS:-256}"
lines=$([ "$arch" = emu ] || echo --code)

sanitize() { # NAME TOOL
  local dir=$out/lib/$1.rprogram.lines log=$out/log/$1.$2 status
  [ -d "$dir" ] || build "$1" rprogram lines $lines || { result "{\"step\": \"sanitize\", \"model\": \"$1\", \"tool\": \"$2\", \"ok\": false}"; return; }
  timeout 500 "$RAMMERC" run "$dir" --random 1 -q \
    --run-under "$sanitizer --tool $2 --error-exitcode 9 --log-file $log" >"$log.run" 2>&1
  status=$?
  # The pairs of lines, and then the bytes and threads of each.
  if [ "$2" = racecheck ] && [ $status != 0 ]; then
    timeout 60 "$RAMMERC" run "$dir" --random 1 -q \
      --run-under "$sanitizer --tool racecheck --racecheck-report hazard --launch-count 1 --log-file $log.hazards" >"$log.hazards.run" 2>&1
  fi
  result "$(python3 - "$log" "$1" "$2" "$status" <<'END'
import json, os, sys
log, model, tool, status = sys.argv[1:]

def lines(file, most):
    text = open(file, errors="replace").read().splitlines() if os.path.exists(file) else []
    text = [line.lstrip("= ") for line in text if line.strip("= ")]
    return text if len(text) <= most else text[:most] + [f"… and {len(text) - most} lines more"]

said = lines(log, 300)
row = {"step": "sanitize", "model": model, "tool": tool, "exit": int(status),
       "says": next((line for line in reversed(said) if "SUMMARY" in line), ""), "ok": status == "0"}
if status != "0" or any("Warning" in line for line in said):
    row["log"] = said
    row["hazards"] = lines(log + ".hazards", 60)
print(json.dumps(row))
END
)"
}

for step in $steps; do
  start=$SECONDS
  case $step in
    delays)
      for n in ${DELAYED:-digits_branchy digits_lstm sparse_8_short}; do
        for p in ${PLANS:-rprogram}; do delays "$n" "$p"; done
      done
      ;;
    contexts) for p in ${PLANS:-rprogram}; do contexts "$p"; done ;;
    devices) for p in ${PLANS:-rprogram}; do devices "$p"; done ;;
    sanitize) # a recurrent model and one that streams weights
      for n in ${SANITIZED:-digits_lstm chain_512}; do
        for tool in ${TOOLS:-memcheck racecheck synccheck}; do sanitize "$n" "$tool"; done
      done
      ;;
  esac
  echo "== $step: $((SECONDS - start)) s"
done
python3 - "$out" "$root" <<'END'
import json, os, sys
out, root = sys.argv[1:]
sys.path.insert(0, os.path.join(root, "bench"))
from collect import shell
rows = [json.loads(line) for line in open(f"{out}/stress.jsonl")]
summary = {
    "schema": "rammerc/stress/v1",
    "gpu": shell("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"),
    "driver": shell("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
    "sanitizer": " ".join(shell("compute-sanitizer", "--version").splitlines()[-1:]),
    "commit": os.environ.get("COMMIT") or shell("git", "-C", root, "rev-parse", "HEAD"),
    "ok": bool(rows) and all(r["ok"] for r in rows),
    "results": rows,
}
with open(f"{out}/stress.json", "w") as f:
    json.dump(summary, f, indent=1)
sys.exit(0 if summary["ok"] else 1)
END
