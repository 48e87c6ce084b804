"""The ratio of each cell to the first, by pairs of trials that ran next to each other, as the report has it.

    python3 ratio.py RECORDS.jsonl
"""

import json
import sys

import numpy as np
import pandas as pd

with open(sys.argv[1]) as lines:
    header, *trials = map(json.loads, lines)
if header["format"] != 3:
    sys.exit(f"format {header['format']}: convert it by `spindle report RECORDS --format records`")


DISTURBANCES = {"other-programs", "stolen", "host-late", "other-run"}


def is_good(trial):
    """A trial counts if it was measured and its database was found consistent."""
    measurement = trial.get("measurement")
    return measurement is not None and all(check["passed"] for check in measurement["verification"])


def is_disturbed(trial):
    """The host disturbed it, so that it was repeated once."""
    return any(warning["kind"] in DISTURBANCES for warning in trial["warnings"])


good = pd.DataFrame(
    {
        "cell": trial["cell"],
        "trial": trial["trial"],
        "block": trial["block"],
        "value": trial["measurement"]["metric"]["value"],
        "is_disturbed": is_disturbed(trial),
    }
    for trial in trials
    if is_good(trial)
)
# A trial that was repeated stands in the file again, further down. The last one counts, unless all were disturbed.
attempt_of = ["cell", "trial"]
all_disturbed = good.groupby(attempt_of).is_disturbed.transform("all")
first, last = good[all_disturbed], good[~all_disturbed]
good = pd.concat([first.drop_duplicates(attempt_of, keep="first"), last.drop_duplicates(attempt_of, keep="last")])
# A row for each block, a column for each cell. Ratios are averaged on the log scale.
blocks = np.log(good.pivot_table(index="block", columns="cell", values="value"))
baseline = header["cells"][0]["name"]
differences = blocks.drop(columns=baseline).sub(blocks[baseline], axis="index")
print(pd.DataFrame({"pairs": differences.count(), "ratio": np.exp(differences.mean())}))
