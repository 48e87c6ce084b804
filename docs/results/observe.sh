#!/usr/bin/env bash
# What `spindle observe` costs a MariaDB under TPC-C in memory, where the cores decide: pairs of windows on one server, one of each pair
# observed, now the first and now the second. Needs mariadbd, and nobody else at work; as root:
#     docs/results/observe.sh [PAIRS, at least 2] [SECONDS OF A WINDOW]
set -euo pipefail
pairs=${1:-10}
seconds=${2:-20}
spindle=${SPINDLE:-spindle}
work=$(mktemp -d)
chmod 755 "$work"
server=

end() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap end EXIT

install -d -o nobody "$work/data"
options=(--no-defaults "--datadir=$work/data" --user=nobody)
mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal >/dev/null
mariadbd "${options[@]}" "--socket=$work/data/socket" --skip-networking --innodb-buffer-pool-size=1G --innodb-flush-log-at-trx-commit=2 \
  "--pid-file=$work/data/pid" 2>"$work/log" &
server=$!
for _ in $(seq 300); do
  [[ -S $work/data/socket ]] && break
  sleep 0.2
done

load() {
  "$spindle" load tpcc --server "socket:$work/data/socket" --warehouses 2 --terminals 4 --warm-up 2s --duration "$seconds"s --json "$@" 2>/dev/null
}
# New orders of a window; they are the first kind of transactions.
committed() { load "$@" | grep -o '"committed": [0-9]*' | head -n 1 | grep -o '[0-9]*'; }
observed() {
  "$spindle" observe --server "socket:$work/data/socket" --for "$((seconds + 2))s" --output "$work/observed.jsonl" >/dev/null 2>"$work/words" &
  local observing=$!
  committed
  wait "$observing"
}
load --prepare >/dev/null
for ((pair = 1; pair <= pairs; pair++)); do
  if ((pair % 2)); then
    with=$(observed)
    without=$(committed)
  else
    without=$(committed)
    with=$(observed)
  fi
  echo "$with $without"
done | awk -v seconds="$seconds" '
  {
    ratio = $1 / $2; sum += ratio; squares += ratio * ratio
    printf "%.1f new orders a second with, %.1f without: %.4f times\n", $1 / seconds, $2 / seconds, ratio
  }
  END {
    # Quantiles of 97.5 % of Student'"'"'s t by degrees of freedom; beyond thirty, that of the normal distribution is close.
    split("12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086 " \
          "2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t, " ")
    mean = sum / NR
    half = (NR <= 31 ? t[NR - 1] : 1.96) * sqrt((squares - NR * mean * mean) / (NR - 1) / NR)
    printf "%.4f times with it, 95 %% interval %.4f to %.4f\n", mean, mean - half, mean + half
  }'
