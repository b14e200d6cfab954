#!/bin/sh
# Writes ../../pgdata/*.tsv from a running PostgreSQL 15. Usage: PSQL="psql -h … -U postgres" sh catalog.sh
set -e
cd "$(dirname "$0")/../../pgdata"
q() { $PSQL -X -A -t -F "$(printf '\t')" -c "$1"; }
q "select oid, typname, typcategory, typispreferred, typelem, typarray, typtype, typlen from pg_type where typnamespace = 'pg_catalog'::regnamespace and typrelid = 0 order by oid" > types.tsv
q "select castsource, casttarget, castcontext, castmethod from pg_cast order by 1, 2" > casts.tsv
q "select o.oprname, o.oprleft, o.oprright, o.oprresult from pg_operator o where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprcode <> 0 order by 1, 2, 3" > operators.tsv
q "select p.proname, p.prokind, p.proretset, p.provariadic, p.pronargdefaults, p.prorettype, array_to_string(p.proargtypes::oid[], ' '), coalesce(array_to_string((select array_agg(n order by i) from unnest(p.proargnames) with ordinality u(n, i) where p.proargmodes is null or p.proargmodes[i] in ('i', 'b', 'v')), ' '), ''), case when p.proisstrict then 's' else '' end || p.provolatile::text from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind <> 'p' and not exists (select 1 from pg_type t where t.typname in ('internal', 'cstring', 'trigger', 'event_trigger') and (t.oid = p.prorettype or t.oid = any(p.proargtypes))) order by 1, 6, 7" > functions.tsv
