#!/bin/sh
# Writes ../testdata/values.tsv.gz: what a running PostgreSQL 15 makes of the inputs of inputs.py. Columns, in COPY text
# format: zone, datestyle, intervalstyle, type, input; then text, binary (hex), sqlstate, message, detail, hint.
# Usage: values.sh 'connection string'
set -eu
here="$(dirname "$0")"
tmp="$(mktemp)"
trap 'rm -f "$tmp"' EXIT
python3 "$here/inputs.py" >"$tmp"
psql "$1" -XAtq -v ON_ERROR_STOP=1 <<SQL | gzip -9n >"$here/../testdata/values.tsv.gz"
set client_min_messages = error;
set client_encoding = utf8;
create temp table input (n serial, zone text, ds text, ivs text, typ text, inp text);
\\copy input (zone, ds, ivs, typ, inp) from '$tmp'
create function pg_temp.try(zone text, ds text, ivs text, typ text, inp text, out txt text, out bin text, out code text, out msg text, out detail text, out hint text) language plpgsql as \$\$
declare send text;
begin
	perform set_config('TimeZone', zone, true), set_config('DateStyle', ds, true), set_config('IntervalStyle', ivs, true);
	select typsend::text into send from pg_type where oid = typ::regtype;
	execute format('select format(''%%s'', x), encode(%s(x), ''hex'') from (select %L::%s) v(x)', send, inp, typ) into txt, bin;
exception when others then
	get stacked diagnostics code = returned_sqlstate, msg = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
end \$\$;
copy (select zone, ds, ivs, typ, inp, t.* from input, lateral pg_temp.try(zone, ds, ivs, typ, inp) t order by n) to stdout;
SQL
