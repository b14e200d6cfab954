#!/usr/bin/env bash
# Writes testdata/: what PostgreSQL 15 writes and reads for COPY. Needs a server: PGHOST, PGPORT, PGUSER … as psql takes them.
set -euo pipefail
cd "$(dirname "$0")/../testdata"
q() { psql -X -q -v ON_ERROR_STOP=1 "$@"; }
q <<'SQL'
DROP TABLE IF EXISTS copy_out, copy_in;
CREATE TABLE copy_out (n int, a text, b text);
INSERT INTO copy_out VALUES (1, 'plain', ''), (2, NULL, 'x'), (3, E'tab\there', E'new\nline'), (4, E'back\\slash', E'cr\rhere'),
 (5, 'comma, quote"', 'NULL'), (6, E'\b\f\v', '\N'), (7, '\.', 'é漢'), (8, ' space ', '|pipe|'), (9, '"', '""');
SQL
i=0
while IFS= read -r options; do
	[ -n "$options" ] || continue
	i=$((i + 1))
	{ echo "$options"; q -c "COPY copy_out TO STDOUT $options"; } >"out-$i.txt"
done <<'EOF'
WITH (FORMAT text)
WITH (FORMAT text, DELIMITER '|', NULL 'nil')
WITH (FORMAT csv)
WITH (FORMAT csv, HEADER, NULL 'NULL')
WITH (FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\')
WITH (FORMAT csv, FORCE_QUOTE (a))
EOF
# Input cases: options, data as a bash string; the answer is the rows as JSON, or the error's SQLSTATE, message and context.
n=0
while IFS=$'\t' read -r options data; do
	[ -n "$options" ] || continue
	n=$((n + 1))
	printf '%b' "$data" >"in-$n.data"
	q -c 'DROP TABLE IF EXISTS copy_in; CREATE TABLE copy_in (id int, v text)' 2>/dev/null
	echo "$options" >"in-$n.txt"
	if err=$(psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -c "\\copy copy_in from 'in-$n.data' $options" 2>&1); then
		q -At -c "SELECT coalesce(json_agg(json_build_array(id, v)), '[]') FROM copy_in" >>"in-$n.txt"
	else
		echo "$err" | sed -n -e 's/^.*ERROR:  //p' -e 's/^CONTEXT:  //p' >>"in-$n.txt"
	fi
done <<'EOF'
WITH (FORMAT text)	1\tone\n2\t\\N\n3\ta\\tb\\\\c\\x41\\101\\n\n
WITH (FORMAT text)	1\tone\r\n2\ttwo\r\n
WITH (FORMAT text)	1\tline\\\nnext\n2\tx\n
WITH (FORMAT text)	1\tone\n\\.\n2\ttwo\n
WITH (FORMAT text)	1\n
WITH (FORMAT text)	1\ta\tb\n
WITH (FORMAT text)	1\ta\nx\tb\n
WITH (FORMAT text)	1\tno newline at the end
WITH (FORMAT text, NULL 'nil')	1\tnil\n2\t\n
WITH (FORMAT text)	1\t\\xff\n
WITH (FORMAT csv)	1,one\n2,\n3,""\n4,"a ""q"" b"\n5,"new\nline"\n
WITH (FORMAT csv)	1,a"b c"d\n2, x \n
WITH (FORMAT csv, HEADER)	id,v\n1,one\n
WITH (FORMAT csv, HEADER match)	id,w\n1,one\n
WITH (FORMAT csv)	1,"open\n2,x\n
WITH (FORMAT csv)	1\n
WITH (FORMAT csv)	1,a,b\n
WITH (FORMAT csv, FORCE_NOT_NULL (v))	1,\n
WITH (FORMAT csv, FORCE_NULL (v))	1,""\n
WITH (FORMAT csv, QUOTE '''', ESCAPE '\\')	1,'it\\'s'\n
WITH (FORMAT csv)	99999999999,x\n
WITH (FORMAT csv)	1,one\r\n2,two\r\n
EOF
