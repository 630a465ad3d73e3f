"""Puts a chain of rOperators with one rTask each on several vEUs in turn. It reads a plan that `rammerc compile
--plan waves --dump` wrote, and writes an rProgram for `--plan FILE.rprog`. In it, every step waits for the step before
if that is on another vEU.

    python3 place.py PLAN.rprog VEUS > PLACED.rprog
"""
import sys


def main():
    lines, veus = open(sys.argv[1]).read().splitlines(), int(sys.argv[2])
    waves = next(line for line in lines if line.startswith("segment ")).split(" waves ")[-1].split()[0]
    steps = sorted((line.split() for line in lines if line[:1].isdigit()), key=lambda s: int(s[2]))
    if any(not s[0].endswith(".0") for s in steps) or [int(s[2]) for s in steps] != list(range(len(steps))):
        sys.exit("place.py: this is no chain of single rTasks")
    for line in lines:
        if line.startswith("segment "):
            print(f"segment rprogram veus {veus} waves {waves}")
        elif not line[:1].isdigit() and not line.startswith("veu "):
            print(line)
    for v in range(veus):
        print("veu", v)
        for n in range(v, len(steps), veus):
            wait = f" wait {(n - 1) % veus}:{(n - 1) // veus}" if veus > 1 and n > 0 else ""
            signal = " signal" if veus > 1 and n + 1 < len(steps) else ""
            print(f"{steps[n][0]} wave {n}{wait}{signal}")


main()
