#!/usr/bin/env bash
# Measures one token of a decoder of 1.1 billion parameters on the GPU at hand: how much of the memory's bandwidth its
# weights take, of 16 bits and of 4, in waves and as an rProgram.
#
#   scripts/gpu_decoder.sh OUT
#
# OUT gets decoder.json (bench/results/h200-decoder.json) and logs. RAMMERC names the binary (default: built with go),
# ARCH the architecture (default: that of this machine's GPU), and MODEL another model of bench/models.py. HBM is the
# memory's bandwidth in bytes per second (default: an H200's). Each rProgram is verified for VERIFY seconds at most
# (default 120); the evaluator takes long for so many weights.
set -uo pipefail
mkdir -p "$1/log" "$1/models"
out=$1
source "$(dirname "$0")/gpu_common.sh"
model=${MODEL:-token_1b}
python3 "$root/bench/models.py" "$out/models" "$model" || exit 1
compiled() { # NAME PLAN FLAGS…
  local name=$1 plan=$2
  shift 2
  "$RAMMERC" compile "$out/models/$model.onnx" --target "$arch" --offline --plan "$plan" "$@" \
    -o "$out/lib_$name" --json >"$out/$name.compile.json" 2>"$out/log/$name.compile"
}
for plan in waves rprogram; do
  compiled "bf16.$plan" $plan --precision bf16 &
  compiled "int4.$plan" $plan --weights int4 &
done
wait
for form in bf16 int4; do
  for plan in waves rprogram; do
    "$RAMMERC" bench "$out/lib_$form.$plan" --runs 100 --warm-up 20 --json >"$out/$form.$plan.bench.json" \
      2>"$out/log/$form.$plan.bench"
  done
done
flags=(--precision bf16)
for form in bf16 int4; do
  timeout "${VERIFY:-120}" "$RAMMERC" verify "$out/lib_$form.rprogram" --model "$out/models/$model.onnx" "${flags[@]}" --json \
    >"$out/$form.verify.json" 2>"$out/log/$form.verify"
  flags=(--weights int4)
done
export out model HBM=${HBM:-4.8e12}
python3 - <<'P'
import json, os

out, hbm = os.environ["out"], float(os.environ["HBM"])
rows, width = 32000, 2048  # of the table of embeddings, of which a token reads one row


def read(name):
    try:
        with open(os.path.join(out, name)) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


result = {"schema": "rammerc/decoder/v3", "model": os.environ["model"], "hbm_bytes_per_s": hbm, "forms": {}}
for form, size in (("bf16", 2), ("int4", 4)):
    row = result["forms"][form] = {"embedding_bytes": rows * width * size}
    for plan in ("waves", "rprogram"):
        compiled, bench = read(f"{form}.{plan}.compile.json"), read(f"{form}.{plan}.bench.json")
        if not compiled or "summary" not in compiled or not bench or "libraries" not in bench:
            continue
        made, timed = compiled["summary"], bench["libraries"][0]
        row["weight_bytes"] = made["weight_bytes"]
        read_bytes = made["weight_bytes"] - row["embedding_bytes"]
        row[plan] = {"p50_ms": timed["p50_ms"], "predicted_ms": timed.get("predicted_ms"), "launches": made["launches"],
                     "code_bytes": made.get("code_bytes"), "registers": made.get("registers"),
                     "share_of_hbm": round(read_bytes / hbm / timed["p50_ms"] * 1e3, 4)}
        result["gpu"] = timed["device"]
    row["verified"] = read(f"{form}.verify.json")
with open(os.path.join(out, "decoder.json"), "w") as f:
    json.dump(result, f, indent=1)
    f.write("\n")
P
