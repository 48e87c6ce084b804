"""Prints what a transaction reads while a cache fills: per cell, by how many sizes of the cache the load has read so far.

    python3 warm-up.py RECORDS.jsonl

A figure is the bytes that a transaction read then, over those that it read behind four sizes of the cache.
"""

import json
import sys

STEPS = [0.5, 1, 1.5, 2, 2.5, 3, 4]
LEVEL_FROM = 4


def cache_bytes(trial):
    """What the server and its page cache hold."""
    given = trial["provenance"]
    return given.get("memory_bytes") or int(given["settings"]["innodb_buffer_pool_size"])


def seconds(trial):
    """Of each second: bytes read of all mounts, and transactions."""
    measurement = trial["measurement"]
    mounts = [mount["series"]["read_mb_per_s"] for mount in measurement["mounts"]]
    read = (sum(rates) * 1e6 for rates in zip(*mounts))
    return zip(read, measurement["series"]["transactions_per_s"])


def steps(trial):
    """By step: bytes read and transactions; the last one has all behind the others."""
    sums = [[0.0, 0.0] for _ in range(len(STEPS) + 1)]
    total = 0.0
    for read, transactions in seconds(trial):
        middle = (total + read / 2) / cache_bytes(trial)
        total += read
        at = sum(middle >= step for step in STEPS)
        sums[at][0] += read
        sums[at][1] += transactions
    return sums, total / cache_bytes(trial)


def main():
    heads = [f"to {step:g}" for step in STEPS] + [f"from {LEVEL_FROM}"]
    print("| cell | " + " | ".join(heads) + " | read in all |")
    print("|---|" + "---:|" * (len(heads) + 1))
    with open(sys.argv[1]) as lines:
        trials = {trial["cell"]: trial for trial in map(json.loads, lines) if trial.get("measurement")}
    # Of a repeated trial, the last row counts.
    for _, trial in sorted(trials.items()):
        sums, total = steps(trial)
        read, transactions = sums[-1]
        if not transactions:
            sys.exit(f"{trial['cell']}: has read {total:.1f} sizes of its cache only; the window is too short")
        level = read / transactions
        parts = [f"{read / done / level:.2f}" if done else "" for read, done in sums[:-1]]
        print(f"| {trial['cell']} | " + " | ".join(parts) + f" | {level / 1024:.0f} KiB | {total:.1f} |")


main()
