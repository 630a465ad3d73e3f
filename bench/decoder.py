"""Joins what scripts/gpu_decoder.sh left in a folder into decoder.json.

    python3 decoder.py OUT MODEL HBM        HBM is the memory's bandwidth in bytes per second
"""
import json
import sys

from collect import load, made_with

ROWS, WIDTH = 32000, 2048  # of the table of embeddings, of which a token reads one row
BYTES = {"bf16": 2, "int4": 4, "int4_bf16": 2}  # of an element of that table, which keeps the precision of values


def form(out, name, size, hbm):
    """Both plans of one form of the weights: their times, and the share of the memory's bandwidth that the weights take."""
    row = {"embedding_bytes": ROWS * WIDTH * size}
    for plan in ("waves", "rprogram"):
        compiled, bench = load(f"{out}/{name}.{plan}.compile.json"), load(f"{out}/{name}.{plan}.bench.json")
        if not compiled or "summary" not in compiled or not bench or "libraries" not in bench:
            continue
        made, timed = compiled["summary"], bench["libraries"][0]
        row["weight_bytes"] = made["weight_bytes"]
        read_bytes = made["weight_bytes"] - row["embedding_bytes"]
        row[plan] = {"p50_ms": timed["p50_ms"], "predicted_ms": timed.get("predicted_ms"), "launches": made["launches"],
                     "code_bytes": made.get("code_bytes"), "registers": made.get("registers"),
                     "share_of_hbm": round(read_bytes / hbm / timed["p50_ms"] * 1e3, 4)}
    row["verified"] = load(f"{out}/{name}.verify.json")
    return row


def main():
    out, model, hbm = sys.argv[1], sys.argv[2], float(sys.argv[3])
    forms = {name: form(out, name, size, hbm) for name, size in BYTES.items()}
    result = {"schema": "rammerc/decoder/v4", **made_with(), "model": model, "hbm_bytes_per_s": hbm, "forms": forms}
    with open(f"{out}/decoder.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for name, row in forms.items():
        for plan in ("waves", "rprogram"):
            if t := row.get(plan):
                print(f"{name} {plan}: {t['p50_ms']:.4f} ms, {t['share_of_hbm']:.2f} of the memory's bandwidth")


main()
