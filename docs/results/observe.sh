#!/usr/bin/env bash
# What `spindle observe` costs a MariaDB under TPC-C in memory, where the cores decide. One load runs all the time. Each round has three
# stretches of it, in an order drawn at random: one is observed, one has a `sleep` in the observer's place, and one has nothing beside it.
# The load's own count of each second is compared, without the first two of a stretch, in which the observer starts and connects.
# Needs mariadbd, and nobody else at work; as root:
#     docs/results/observe.sh [ROUNDS, at least 2] [SECONDS OF A STRETCH, at least 4]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../examples/mariadb.sh"
rounds=${1:-30}
seconds=${2:-12}
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

load() { "$spindle" load tpcc --server "socket:$work/socket" --warehouses 2 --terminals 4 "$@" >/dev/null; }
load --prepare --duration 0s 2>/dev/null
load --warm-up 20s --duration "$((3 * rounds * seconds + 1))s" 2>"$work/load" &
loading=$!

# reached N: the load has told of its first N seconds.
reached() {
  until [[ $(grep --count ' transactions ' "$work/load") -ge $1 ]]; do
    if ! kill -0 "$loading" 2>/dev/null; then
      cat "$work/load" >&2
      exit 1
    fi
    sleep 0.05
  done
}
observe() {
  local TIMEFORMAT='%U %S'
  { time "$spindle" observe --server "socket:$work/socket" --for "${seconds}s" --output "$work/observed.jsonl" >/dev/null 2>"$work/words"; } 2>>"$work/processor"
}
past=0
for ((round = 1; round <= rounds; round++)); do
  for arm in $(shuf --echo alone sleep observed); do
    reached "$past"
    case $arm in
      alone) ;;
      sleep) sleep "$seconds" & ;;
      observed) observe & observing=$! ;;
    esac
    echo "$round $arm $((past + 3)) $((past + seconds))" >>"$work/stretches"
    past=$((past + seconds))
  done
done
wait "$loading" "$observing"
awk '
  # Adds a ratio to those of an arm.
  function add(arm, ratio) { sum[arm] += ratio; squares[arm] += ratio * ratio }
  function tell(arm,   mean, half) {
    mean = sum[arm] / rounds
    half = (rounds <= 31 ? t[rounds - 1] : 1.96) * sqrt((squares[arm] - rounds * mean * mean) / (rounds - 1) / rounds)
    printf "%s: %.4f times, 95 %% interval %.4f to %.4f\n", arm, mean, mean - half, mean + half
  }
  FILENAME ~ /load$/ { if (/ transactions /) count[++second] = $3; next }
  {
    done = 0
    for (second = $3; second <= $4; second++) done += count[second]
    rate[$2] = done / ($4 - $3 + 1)
  }
  FNR % 3 == 0 {
    printf "%.1f transactions a second, %.1f beside a sleep, %.1f observed\n", rate["alone"], rate["sleep"], rate["observed"]
    rounds++
    add("beside a sleep", rate["sleep"] / rate["alone"])
    add("observed, against the mean of both", rate["observed"] / ((rate["alone"] + rate["sleep"]) / 2))
  }
  END {
    # Quantiles of 97.5 % of Student'"'"'s t by degrees of freedom; beyond thirty, that of the normal distribution is close.
    split("12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086 " \
          "2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t, " ")
    for (arm in sum) tell(arm)
  }' "$work/load" "$work/stretches"
awk -v seconds="$seconds" '{ sum += $1 + $2 } END { printf "the observer took %.3f s of a processor in %d s, its start included\n", sum / NR, seconds }' "$work/processor"
