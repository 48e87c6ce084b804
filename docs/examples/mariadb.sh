# For `source`: starts a MariaDB of its own for a script.

# start_mariadb DIRECTORY FOR SOCKET AND TEMPORARY FILES, DIRECTORY OF THE DATA, OPTION...: sets `mariadb` to the process's number. It
# listens at DIRECTORY/socket only, `root` has no password, and its words go to DIRECTORY/log.
start_mariadb() {
  local run=$1 data=$2 options
  shift 2
  options=(--no-defaults "--datadir=$data" --user=nobody "--tmpdir=$run")
  install -d -o nobody "$run" "$data"
  mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal >/dev/null
  mariadbd "${options[@]}" "--socket=$run/socket" --skip-networking "--pid-file=$run/pid" "$@" 2>"$run/log" &
  mariadb=$!
  for _ in $(seq 300); do
    [[ -S $run/socket ]] && return
    kill -0 "$mariadb" 2>/dev/null || break
    sleep 0.2
  done
  cat "$run/log" >&2
  return 1
}
