#!/usr/bin/env bash
# The share of the preload library in the instructions that MariaDB executes in user space for a point select from memory, counted
# by valgrind, so that other programs and the processor's speed do not matter. Needs valgrind, mariadbd and a built Spindle:
#     docs/results/preload-instructions.sh target/release
set -euo pipefail
target=${1:-target/release}
library=$(ls -t "$target"/build/spindle-lab-*/out/libspindle_dilate.so | head -n 1)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Statements, instructions in all, instructions in the library; after a load of so many seconds.
count() {
  local at=$directory/$1 server
  mkdir -p "$at/data"
  printf 'create database mysql;\ncreate database spindle;\n' |
    mariadbd --no-defaults --bootstrap --datadir="$at/data" --user=root 2>"$at/bootstrap.log"
  local since_boot
  since_boot=$(awk '{printf "%.0f", $1 * 1e9}' /proc/uptime)
  SPINDLE_DILATION="1.0001 $since_boot $(date +%s%N)" LD_PRELOAD=$(realpath "$library") \
    valgrind --tool=callgrind --vgdb=no --callgrind-out-file="$at/counts" \
    mariadbd --no-defaults --datadir="$at/data" --user=root --skip-grant-tables --skip-networking --socket="$at/s" \
    --innodb-use-native-aio=0 --innodb-buffer-pool-size=64M --innodb-buffer-pool-size-max=64M 2>"$at/server.log" &
  server=$!
  for ((second = 0; second < 60; second++)); do
    [[ -S $at/s ]] && break
    sleep 1
  done
  local load=("$target/spindle" load oltp --server "socket:$at/s" --script point-select --tables 1 --rows 1000
    --distribution uniform --terminals 1 --warm-up 0s)
  "${load[@]}" --duration 1s --prepare >/dev/null 2>&1
  "${load[@]}" --duration "$1s" --json 2>/dev/null >"$at/load.json"
  kill "$server"
  wait "$server" || true
  callgrind_annotate --threshold=100 "$at/counts" | tr -d , |
    awk -v statements="$(grep -o '"committed": [0-9]*' "$at/load.json" | head -n 1 | grep -o '[0-9]*')" \
      '/PROGRAM TOTALS/ {all = $1} /libspindle_dilate/ {library += $1} END {print statements, all, library}'
}

# The difference of two loads is without the server's start and end.
{ count 2; count 30; } | awk '
  NR == 1 {statements = $1; all = $2; library = $3}
  END {
    n = $1 - statements
    printf "%d statements: %.0f instructions each, %.0f of them in the library: %.2f %%\n",
      n, ($2 - all) / n, ($3 - library) / n, 100 * ($3 - library) / ($2 - all)
  }'
