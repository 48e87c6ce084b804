#!/usr/bin/env bash
# What `spindle observe` costs a MariaDB under TPC-C in memory, where the cores decide. Each round has three windows on one server, in an
# order drawn at random: one is observed, and two are not, of which the second shows what the method itself can tell.
# Needs mariadbd, and nobody else at work; as root:
#     docs/results/observe.sh [ROUNDS, at least 2] [SECONDS OF A WINDOW]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../examples/mariadb.sh"
rounds=${1:-20}
seconds=${2:-20}
spindle=${SPINDLE:-spindle}
work=$(mktemp -d)
chmod 755 "$work"
mariadb=

end() {
  [[ -z $mariadb ]] || kill "$mariadb" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap end EXIT

start_mariadb "$work" "$work/data" --innodb-buffer-pool-size=1G --innodb-flush-log-at-trx-commit=2

load() {
  "$spindle" load tpcc --server "socket:$work/socket" --warehouses 2 --terminals 4 --warm-up 2s --duration "$seconds"s --json "$@" 2>/dev/null
}
# New orders of a window; they are the first kind of transactions.
committed() { load "$@" | grep -o '"committed": [0-9]*' | head -n 1 | grep -o '[0-9]*'; }
window() {
  local observing=
  if [[ $1 == observed ]]; then
    "$spindle" observe --server "socket:$work/socket" --for "$((seconds + 2))s" --output "$work/observed.jsonl" >/dev/null 2>"$work/words" &
    observing=$!
  fi
  committed
  [[ -z $observing ]] || wait "$observing"
}

load --prepare >/dev/null
for ((round = 1; round <= rounds; round++)); do
  declare -A found
  for arm in $(shuf --echo alone again observed); do
    found[$arm]=$(window "$arm")
  done
  echo "${found[alone]} ${found[again]} ${found[observed]}"
done | awk -v seconds="$seconds" '
  # Adds a ratio to those of an arm.
  function add(arm, ratio) { sum[arm] += ratio; squares[arm] += ratio * ratio }
  function tell(arm,   mean, half) {
    mean = sum[arm] / NR
    half = (NR <= 31 ? t[NR - 1] : 1.96) * sqrt((squares[arm] - NR * mean * mean) / (NR - 1) / NR)
    printf "%s: %.4f times, 95 %% interval %.4f to %.4f\n", arm, mean, mean - half, mean + half
  }
  {
    printf "%.1f new orders a second, %.1f once more, %.1f observed\n", $1 / seconds, $2 / seconds, $3 / seconds
    fflush()
    usual = ($1 + $2) / 2
    add("once more, against the first", $2 / $1)
    add("observed, against the mean of both", $3 / usual)
  }
  END {
    # Quantiles of 97.5 % of Student'"'"'s t by degrees of freedom; beyond thirty, that of the normal distribution is close.
    split("12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086 " \
          "2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t, " ")
    for (arm in sum) tell(arm)
  }'
