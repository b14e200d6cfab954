#!/bin/sh
# Writes ../testdata/values.golden: what a running PostgreSQL 15 sends for the third column of values.txt.
# Columns: name, type OID, text (quoted for COPY), binary as hex. Session time zone: Europe/Oslo.
# Usage: values.sh 'connection string'
set -eu
here="$(dirname "$0")"
tmp="$(mktemp)"
trap 'rm -f "$tmp"' EXIT
grep -v '^#' "$here/../testdata/values.txt" | cut -f1,3 | sed 's/\\/\\\\/g' >"$tmp"
psql "$1" -XAtq -v ON_ERROR_STOP=1 >"$here/../testdata/values.golden" <<SQL
set client_min_messages = error;
set client_encoding = utf8;
set timezone = 'Europe/Oslo';
create temp table input (n serial, name text, expr text);
\\copy input (name, expr) from '$tmp'
create function pg_temp.run(expr text, out oid oid, out txt text, out bin text) language plpgsql as \$\$
declare typ text; send text;
begin
	execute format('select pg_typeof(x)::oid, format(''%%s'', x), pg_typeof(x)::text from (select %s) v(x)', expr) into oid, txt, typ;
	if oid = 705 then oid := 25; typ := 'text'; end if;
	select typsend::text into send from pg_type t where t.oid = run.oid;
	execute format('select encode(%s(x), ''hex'') from (select (%s)::%s) v(x)', send, expr, typ) into bin;
	execute format('select case when x is null then null else %L end from (select %s) v(x)', txt, expr) into txt;
end \$\$;
copy (select name, t.* from input, lateral pg_temp.run(expr) t order by n) to stdout;
SQL
