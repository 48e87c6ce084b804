"""Runs a scenario at several dilations, block by block, and prints each one's figure over the first one's.

    python3 dilation.py SCENARIO.toml DIRECTORY --k 1 2 4 --blocks 6 [--same-work] [--spindle PATH]

A block has one trial at each dilation, next to each other, so that the machine's drift hits all alike. `--k none` is a run
without dilation, in which no library is preloaded. With `--same-work`, the scenario's durations are divided by k: every
trial then does the same work and leaves the database in the same state. The script goes on where it stopped.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

DURATION = re.compile(r'^(warm_up|settle|measure) = "([\d.]+) s"', re.MULTILINE)
# Student's t, two-sided 95 %, by degrees of freedom.
T = [math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def scenario(text, k, trials, same_work):
    """The scenario's text with this dilation and number of trials."""
    if same_work and k != "none":
        text = DURATION.sub(lambda found: f'{found[1]} = "{round(float(found[2]) * 1000 / float(k))} ms"', text)
    text = re.sub(r"^(dilation|trials) = .*\n", "", text, flags=re.MULTILINE)
    keys = f"trials = {trials}\n" + ("" if k == "none" else f"dilation = {k}\n")
    return text.replace("[run]\n", "[run]\n" + keys)


def figures(records):
    """By cell: by block, throughput and p95 of the latency. Of a repeated trial, the last row counts."""
    found = {}
    with open(records) as lines:
        for trial in map(json.loads, lines):
            measurement = trial.get("measurement")
            if measurement:
                values = measurement["metric"]["value"], measurement["latency"]["p95_ms"]
                found.setdefault(trial["cell"], {})[trial["block"]] = values
    return found


def ratio(figures, baseline, index):
    """The mean ratio with its 95 % interval, by pairs of one block, on the log scale."""
    pairs = [(figures[block][index], baseline[block][index]) for block in figures.keys() & baseline.keys()]
    logs = [math.log(one / other) for one, other in pairs]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return f"{math.exp(mean):.3f}"
    t = T[len(logs) - 1] if len(logs) <= len(T) else 1.96 + 2.5 / (len(logs) - 1)
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--k", nargs="+", default=["1", "2", "4", "8"])
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--same-work", action="store_true")
    parser.add_argument("--spindle", default="target/release/spindle")
    arguments = parser.parse_args()
    text = arguments.scenario.read_text()
    arguments.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    for block in range(1, arguments.blocks + 1):
        turn = block % len(arguments.k)
        for k in arguments.k[turn:] + arguments.k[:turn]:
            file = arguments.directory / f"k-{k}.toml"
            file.write_text(scenario(text, k, block, arguments.same_work))
            command = [arguments.spindle, "run", file, "--output", arguments.directory / f"k-{k}"]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(done.stderr)
    found = {k: figures(arguments.directory / f"k-{k}" / "records.jsonl") for k in arguments.k}
    first = arguments.k[0]
    for cell in found[first]:
        for index, name in enumerate(["throughput", "p95 of the latency, ms"]):
            print(f"{cell}, {name}")
            for k in arguments.k:
                values = [values[index] for values in found[k][cell].values()]
                words = ratio(found[k][cell], found[first][cell], index)
                print(f"  k = {k}: mean {statistics.mean(values):.4g}, {words} times that at {first}, {len(values)} trials")


main()
