#!/usr/bin/env bash
# A MariaDB on an emulated 7200 rpm disk under load stands for a server in production. It is observed, advice is asked for, and
# the best two storages are measured. Less than half an hour, as root; but for the results, nothing is left behind.
# Usage: docs/examples/production.sh [DIRECTORY FOR THE RESULTS] [LENGTH OF THE WINDOW, such as 10m]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/mariadb.sh"
results=$(realpath -m "${1:-production-results}")
window=${2:-10m}
spindle=${SPINDLE:-spindle}
mkdir -p "$results"
work=$(mktemp -d)
chmod 755 "$work"
mariadb=0
load=0

end() {
  if ((load)); then kill "$load" 2>/dev/null || true; wait "$load" 2>/dev/null || true; fi
  if ((mariadb)); then kill "$mariadb" 2>/dev/null || true; wait "$mariadb" 2>/dev/null || true; fi
  "$spindle" disk down production >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

"$spindle" disk up hdd-7200 --size 3G --name production --at "$work/disk" >/dev/null
start_mariadb "$work/run" "$work/disk/data" --innodb-buffer-pool-size=96M --innodb-flush-method=O_DIRECT

# The load of the shop's own clients; `spindle observe` does not know of it. The tables are made while the disk costs no time.
"$spindle" disk timing production off
"$spindle" load tpcc --server "socket:$work/run/socket" --warehouses 10 --terminals 16 --prepare --duration 5s >/dev/null 2>"$results/load.txt"
"$spindle" disk timing production on
"$spindle" load tpcc --server "socket:$work/run/socket" --warehouses 10 --terminals 16 --warm-up 20s --duration 20m >>"$results/load.txt" 2>&1 &
load=$!
sleep 30

echo "\$ spindle observe --server socket:/run/mysqld/mysqld.sock --for $window"
"$spindle" observe --server "socket:$work/run/socket" --for "$window" --output "$results/observed.jsonl"
end
trap - EXIT

echo
need="100 transactions a second, p95 50 ms"
echo "\$ spindle advise observed.jsonl --today hdd-7200 --need \"$need\" --confirm 2 --load load.toml"
cd "$results"
"$spindle" advise observed.jsonl --today hdd-7200 --need "$need" --confirm 2 --load "$here/load.toml"
