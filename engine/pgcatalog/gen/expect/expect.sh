#!/bin/sh
# Makes a PostgreSQL 15 cluster with testdata/schema.sql and records its answers in testdata. LOGS names a folder of statement logs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${PGBIN:-/usr/lib/postgresql/15/bin}
dir=$(mktemp -d /tmp/pgcatalog-expect.XXXXXX)
run() { if [ "$(id -u)" = 0 ]; then su postgres -c "$1"; else sh -c "$1"; fi; }
if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
trap 'run "$bin/pg_ctl -D $dir/data -m immediate stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
run "$bin/initdb -D $dir/data -U postgres --locale=C.UTF-8 -E UTF8 -A trust" >/dev/null
run "$bin/pg_ctl -w -D $dir/data -o '-p 54998 -c listen_addresses= -k $dir -c fsync=off -c autovacuum=off' -l $dir/log start" >/dev/null
"$bin/psql" -q -h "$dir" -p 54998 -U postgres -v ON_ERROR_STOP=1 -f "$here/../../testdata/schema.sql"
cd "$here"
go run . -dsn "host=$dir port=54998 user=postgres dbname=postgres" -logs "${LOGS:-}" -o "$here/../../testdata"
