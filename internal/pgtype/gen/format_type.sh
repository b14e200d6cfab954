#!/bin/sh
# Writes ../testdata/format_type.tsv (oid, typmod, format_type(oid, typmod), format_type(oid, NULL)) from a running
# PostgreSQL 15. Usage: format_type.sh 'postgres connection string'
set -eu
psql "$1" -XAt -F '	' -c "
	with t as (select oid from pg_type where oid < 10000),
	m(oid, typmod) as (
		select oid, -1 from t
		union all select o, n + 4 from unnest(array[1042,1043,1014,1015]::oid[]) o, unnest(array[1,20,10485760]) n
		union all select o, ((p << 16) | (s & 2047)) + 4 from unnest(array[1700,1231]::oid[]) o, unnest(array[1,10,38,1000]) p, unnest(array[-1000,-2,0,2,38,1000]) s
		union all select o, n from unnest(array[1083,1114,1184,1266,1115,1560,1562]::oid[]) o, unnest(array[0,3,6]) n
		union all select 1186, (f << 16) | p from unnest(array[4,2,8,1024,2048,4096,6,1032,3080,7176,3072,7168,6144,32767]) f, unnest(array[65535]) p
		union all select 1186, (f << 16) | p from unnest(array[4096,7176,7168,6144,32767]) f, unnest(array[0,3,6]) p
	)
	select oid, typmod, format_type(oid, typmod), format_type(oid, null) from m order by 1, 2" >"$(dirname "$0")/../testdata/format_type.tsv"
