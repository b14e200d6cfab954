#!/bin/sh
# Writes ../testdata/errors.golden: SQLSTATE and message that a running PostgreSQL 15 gives for the third column of errors.txt.
# Usage: errors.sh 'connection string'
set -eu
here="$(dirname "$0")"
tmp="$(mktemp)"
trap 'rm -f "$tmp"' EXIT
grep -v '^#' "$here/../testdata/errors.txt" | cut -f1,3 | sed 's/\\/\\\\/g' >"$tmp"
psql "$1" -XAtq -v ON_ERROR_STOP=1 >"$here/../testdata/errors.golden" <<SQL
set client_min_messages = error;
create temp table input (n serial, name text, stmt text);
\\copy input (name, stmt) from '$tmp'
create function pg_temp.run(stmt text, out code text, out msg text) language plpgsql as \$\$
begin
	execute stmt;
	code := '00000';
exception when others then
	get stacked diagnostics code = returned_sqlstate, msg = message_text;
end \$\$;
copy (select name, t.* from input, lateral pg_temp.run(stmt) t order by n) to stdout;
SQL
