#!/usr/bin/env bash
# How fast `spindle query load` fills two MariaDB servers, beside LOAD DATA LOCAL INFILE of the same file into one of them; how fast it
# is with that one; and how fast two clients fill both with LOAD DATA LOCAL INFILE of halves that were divided before, which is what the
# machine can do at most, and the same in packets of 4 KiB, as Spindle's client library sends files. The five take turns. Needs mariadbd,
# and nobody else at work; as root:
#     docs/results/query-load.sh [ROUNDS] [ROWS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../examples/mariadb.sh"
rounds=${1:-5}
rows=${2:-1350000}
spindle=${SPINDLE:-spindle}
work=$(mktemp -d)
chmod 755 "$work"
servers=()

end() {
  for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap end EXIT

for name in a b; do
  start_mariadb "$work/$name" "$work/$name/data" --innodb-buffer-pool-size=1G --local-infile=1
  servers+=("$mariadb")
  mariadb "--socket=$work/$name/socket" -e 'CREATE DATABASE flights'
done

# Seven columns of numbers, dates and short texts, as a row of the flights has them; the servers' files are in memory.
awk -v rows="$rows" 'BEGIN {
  for (row = 0; row < rows; row++)
    printf "%d\t%d-%02d-%02d\tN%05d\t%d\t%d\t%d\tcode %d\n", row, 2000 + row % 9, 1 + row % 12, 1 + row % 28,
      row * 7919 % 99991, row * 31 % 300, row * 17 % 1440 - 60, row * 13 % 2600, row % 5
}' >"$work/rows.tsv"
awk -v prefix="$work/half-" '{ print >(prefix (NR % 2 ? "a" : "b")) }' "$work/rows.tsv"

empty() {
  for name in a b; do
    mariadb "--socket=$work/$name/socket" flights -e 'DROP TABLE IF EXISTS flight; CREATE TABLE flight (id INT NOT NULL, day DATE NOT NULL,
      tail CHAR(6) NOT NULL, airport INT NOT NULL, delay INT NOT NULL, distance INT NOT NULL, cause VARCHAR(20) NOT NULL, KEY (day))'
  done
}

# Rows of the table on these servers.
count() {
  local name all=0
  for name in "$@"; do
    ((all += $(mariadb "--socket=$work/$name/socket" flights -N -e 'SELECT COUNT(*) FROM flight')))
  done
  echo "$all"
}

# Seconds of a command after the first argument, the servers with its rows.
timed() {
  local names=$1 start
  shift
  empty
  start=$(date +%s%N)
  "$@" >/dev/null 2>"$work/words" || { cat "$work/words" >&2; exit 1; }
  awk -v start="$start" -v end="$(date +%s%N)" 'BEGIN {printf "%.2f\n", (end - start) / 1e9}'
  [[ $(count $names) == "$rows" ]] || { echo "rows are missing" >&2; exit 1; }
}

load=("$spindle" query load --table flights.flight "$work/rows.tsv" --server)
url() { echo "socket:$work/$1/socket"; }
# load_data SERVER FILE [PACKET-BYTES]: the client sends a file in packets of the size of its buffer, of 16 KiB unless told otherwise.
load_data() {
  mariadb "--socket=$work/$1/socket" --local-infile=1 "--net-buffer-length=${3-16384}" flights \
    -e "LOAD DATA LOCAL INFILE '$2' INTO TABLE flight"
}
halves() {
  load_data a "$work/half-a" "$@" &
  load_data b "$work/half-b" "$@"
  wait $!
}
for ((round = 0; round < rounds; round++)); do
  alone=$(timed a load_data a "$work/rows.tsv")
  one=$(timed a "${load[@]}" "$(url a)")
  two=$(timed "a b" "${load[@]}" "$(url a),$(url b)" --column id)
  divided=$(timed "a b" halves)
  small=$(timed "a b" halves 4096)
  awk -v alone="$alone" -v one="$one" -v two="$two" -v divided="$divided" -v small="$small" 'BEGIN {
    printf "LOAD DATA LOCAL %.2f s; spindle into one server %.2f s, into two shards %.2f s: ", alone, one, two
    printf "%.2f times as fast as LOAD DATA LOCAL; halves side by side %.2f s: %.2f times; ", alone / two, divided, alone / divided
    printf "in packets of 4 KiB %.2f s: %.2f times\n", small, alone / small
  }'
done
