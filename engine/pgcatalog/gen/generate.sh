#!/bin/sh
# Makes a fresh PostgreSQL 15 cluster and writes ../pg15.bin from it. Run as root (initdb then runs as postgres) or as any other user.
#   PGBIN=/usr/lib/postgresql/15/bin engine/pgcatalog/gen/generate.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${PGBIN:-/usr/lib/postgresql/15/bin}
dir=$(mktemp -d /tmp/pgcatalog-gen.XXXXXX)
run() { if [ "$(id -u)" = 0 ]; then su postgres -c "$1"; else sh -c "$1"; fi; }
if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
trap 'run "$bin/pg_ctl -D $dir/data -m immediate stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
run "$bin/initdb -D $dir/data -U skade_owner_0 --locale=C.UTF-8 -E UTF8 -A trust" >/dev/null
run "$bin/pg_ctl -w -D $dir/data -o '-p 54999 -c listen_addresses= -k $dir -c fsync=off -c autovacuum=off' -l $dir/log start" >/dev/null
run "$bin/createdb -h $dir -p 54999 -U skade_owner_0 skade_db_0"
cd "$here"
go run . -dsn "host=$dir port=54999 user=skade_owner_0 dbname=skade_db_0" -o "$here/../pg15.bin"
