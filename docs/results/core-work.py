"""Prints how much of the spread between trials of a cell goes with the time that a piece of arithmetic takes a core.

    python3 core-work.py RECORDS.jsonl...

All on logarithms and within cells. The slope is of throughput over that time, and what is left is the spread around it.
"""

import json
import math
import sys
from collections import defaultdict


def trials(path):
    """By cell: the logarithms of throughput and of the arithmetic's time. Of a repeated trial, the last row counts."""
    cells = defaultdict(dict)
    with open(path) as lines:
        for trial in map(json.loads, lines):
            measurement = trial.get("measurement")
            if measurement:
                work = measurement["machine"].get("core_work_us")
                if work is None:
                    sys.exit(f"{path}: older than the arithmetic")
                cells[trial["cell"]][trial["trial"]] = (math.log(measurement["metric"]["value"]), math.log(work))
    return {cell: list(of_trials.values()) for cell, of_trials in cells.items()}


def deviations(values):
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def main():
    print("| cell | trials | spread | of the arithmetic | correlation | slope | what is left |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for path in sys.argv[1:]:
        for cell, pairs in sorted(trials(path).items()):
            throughput, work = (deviations(side) for side in zip(*pairs))
            tt, ww = (sum(value * value for value in side) for side in (throughput, work))
            tw = sum(one * other for one, other in zip(throughput, work))
            slope = tw / ww
            count = len(pairs)
            spread = [math.sqrt(squares / (count - 1)) for squares in (tt, ww)]
            left = math.sqrt(max(tt - slope * tw, 0) / (count - 2))
            shares = [f"{100 * share:.1f} %" for share in (*spread, left)]
            print(f"| {cell} | {count} | {shares[0]} | {shares[1]} | {tw / math.sqrt(tt * ww):.2f} | {slope:.2f} | {shares[2]} |")


main()
