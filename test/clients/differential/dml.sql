-- INSERT, UPDATE, DELETE, COPY.
CREATE TABLE p (id int PRIMARY KEY, name text NOT NULL DEFAULT 'none', price numeric(8,2), qty int DEFAULT 1, at timestamptz, tags text[]);
INSERT INTO p VALUES (1, 'a', 1.5, 10, '2026-01-01 00:00+00', '{x}'), (2, 'b', 2.25, DEFAULT, NULL, NULL);
INSERT INTO p (id) VALUES (3) RETURNING *;
INSERT INTO p (name, id) VALUES ('d', 4), (DEFAULT, 5) RETURNING id, name, qty;
INSERT INTO p (id, price) SELECT n, n * 1.1 FROM generate_series(6, 8) n RETURNING id, price;
INSERT INTO p DEFAULT VALUES;
INSERT INTO p (id, name) VALUES (9, NULL);
INSERT INTO p (id, name) VALUES (1, 'dup');
INSERT INTO p (id, name) VALUES (10, 'x'), (10, 'y');
INSERT INTO p (id, name) VALUES (1, 'c'), (20, 'new') ON CONFLICT DO NOTHING;
INSERT INTO p (id, name) VALUES (1, 'c'), (21, 'new') ON CONFLICT (id) DO NOTHING RETURNING id;
INSERT INTO p (id, name, qty) VALUES (1, 'up', 5), (22, 'ins', 6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, qty = p.qty + excluded.qty RETURNING id, name, qty;
INSERT INTO p AS q (id, name) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET name = q.name || excluded.name WHERE q.qty > 100 RETURNING *;
INSERT INTO p (id, name) VALUES (23, 'a'), (23, 'b') ON CONFLICT (id) DO UPDATE SET name = excluded.name;
INSERT INTO p (id, name) VALUES (1, 'a') ON CONFLICT (name) DO NOTHING;
INSERT INTO p (id, id) VALUES (1, 2);
INSERT INTO p (id) VALUES (1, 2);
INSERT INTO p (id, name) VALUES (1);
INSERT INTO p (id, price) VALUES (30, 1234567.891);
INSERT INTO p (id, price) VALUES (30, 1.005), (31, 1.004) RETURNING price;
INSERT INTO nosuch VALUES (1);
SELECT * FROM p ORDER BY id;
UPDATE p SET qty = qty + 1;
UPDATE p SET name = upper(name), price = price * 2 WHERE id <= 2 RETURNING id, name, price AS "new price";
UPDATE p SET (name, qty) = ('t', 7) WHERE id = 3 RETURNING *;
UPDATE p SET (name, qty) = (SELECT 's', 8) WHERE id = 3 RETURNING name, qty;
UPDATE p SET qty = DEFAULT, at = NULL WHERE id = 1 RETURNING qty, at;
UPDATE p x SET name = x.name || s.n FROM (VALUES (1, 'one'), (2, 'two')) s(id, n) WHERE s.id = x.id RETURNING x.id, x.name, s.n;
UPDATE p SET name = NULL WHERE id = 1;
UPDATE p SET id = 2 WHERE id = 1;
UPDATE p SET id = 101 WHERE id = 1 RETURNING id;
UPDATE p SET nosuch = 1;
UPDATE p SET qty = 'x';
UPDATE p SET qty = name;
UPDATE p SET qty = 1, qty = 2;
UPDATE p SET qty = 1 WHERE false;
UPDATE p SET tags[1] = 'y' WHERE id = 101;
WITH u AS (UPDATE p SET qty = 99 WHERE id = 4 RETURNING id, qty) SELECT * FROM u;
DELETE FROM p WHERE id = 4;
DELETE FROM p USING (VALUES (5), (6)) d(id) WHERE p.id = d.id RETURNING p.id, p.name;
DELETE FROM p WHERE id IN (SELECT id FROM p WHERE id > 20) RETURNING id;
WITH d AS (DELETE FROM p WHERE id = 100000 RETURNING *) SELECT id, name FROM d;
DELETE FROM p WHERE nosuch = 1;
DELETE FROM p WHERE false;
SELECT * FROM p ORDER BY id;
COPY p TO STDOUT;
COPY (SELECT id, name, price, tags, at FROM p ORDER BY id) TO STDOUT;
COPY (SELECT * FROM p ORDER BY id) TO STDOUT (FORMAT csv);
COPY (SELECT * FROM p ORDER BY id) TO STDOUT WITH CSV HEADER;
COPY (SELECT id, name, NULL, '', 'a,b', E'q"q', E'l\nl' FROM p ORDER BY id) TO STDOUT (FORMAT csv, HEADER, DELIMITER ';', NULL 'nil', QUOTE '''', ESCAPE '\', FORCE_QUOTE (name));
COPY (SELECT E'a\tb', E'c\\d', E'e\nf', NULL, '', E'\r\b\f') TO STDOUT;
COPY (SELECT E'a|b', NULL) TO STDOUT (DELIMITER '|', NULL 'x');
COPY (SELECT 1, 'a', '') TO STDOUT (FORMAT csv, FORCE_QUOTE *);
COPY (SELECT 1, 'a', NULL::text, 1.5, true, now() IS NULL) TO STDOUT (FORMAT binary);
COPY (SELECT * FROM p ORDER BY id) TO STDOUT (FORMAT binary);
COPY (SELECT id FROM p WHERE false) TO STDOUT (FORMAT binary);
COPY p (id, name) TO STDOUT (HEADER);
COPY (SELECT '\.') TO STDOUT (FORMAT csv);
COPY nosuch TO STDOUT;
COPY p (nosuch) TO STDOUT;
COPY p TO STDOUT (FORMAT nosuch);
COPY p TO STDOUT (DELIMITER 'ab');
COPY p TO STDOUT (NOSUCH 1);
COPY (SELECT 1/0) TO STDOUT;
CREATE TABLE k (id int PRIMARY KEY, t text, n numeric(6,2), d date, a int[], b bool);
COPY k FROM STDIN;
1	one	1.5	2026-01-01	{1,2}	t
2	\N	\N	\N	\N	\N
3	a\tb\\c\nd		2026-01-01	{}	f
\.
COPY k FROM STDIN;
4	a\tb\\c\nd	2	2026-01-01	{}	f
5	\x41\101	-1	2026-02-01	{NULL}	no
\.
COPY k (t, id) FROM STDIN (FORMAT csv);
"quoted, with ""q""",6
,7
"",8
\.
COPY k FROM STDIN (FORMAT csv, HEADER, DELIMITER ';', NULL 'nil', QUOTE '''');
id;t;n;d;a;b
9;'a;b';nil;2026-01-01;{1};true
10;'multi
line';1.234;nil;nil;nil
\.
COPY k (id, t) FROM STDIN (FORMAT csv, HEADER match);
id,x
11,a
\.
COPY k (id, t) FROM STDIN (FORMAT csv, FORCE_NOT_NULL (t));
12,
\.
COPY k (id, t) FROM STDIN (FORMAT csv, FORCE_NULL (t));
13,""
\.
COPY k (id, t) FROM STDIN;
1	dup
\.
COPY k (id, t) FROM STDIN;
x	bad
\.
COPY k (id, t) FROM STDIN;
14
\.
COPY k (id, t) FROM STDIN;
14	a	extra
\.
COPY k (id, n) FROM STDIN;
14	99999
\.
COPY k (id, t) FROM STDIN (FORMAT csv);
15,"open
\.
COPY k (id, d) FROM STDIN (FORMAT csv);
16,2026-01-01
17,2026-13-01
\.
COPY k (id, t) FROM STDIN;
\N	nokey
\.
COPY nosuch FROM STDIN;
COPY k (id, id) FROM STDIN;
COPY k FROM STDIN WHERE id > 100;
101	w	\N	\N	\N	\N
99	w	\N	\N	\N	\N
\.
SELECT * FROM k ORDER BY id;
SELECT id, t IS NULL, t = '' FROM k WHERE id > 5 ORDER BY id;
TRUNCATE k;
SELECT count(*) FROM k;
TRUNCATE nosuch;
--! differs: a NOTICE says how numeric without precision is stored
CREATE TABLE k2 AS SELECT id, name, price * 2 AS double FROM p WITH NO DATA;
--! differs: a NOTICE says how numeric without precision is stored
CREATE TABLE k3 AS SELECT id, name, price * 1.3 AS double FROM p ORDER BY id;
SELECT id, name, double::numeric(10,3) FROM k3 ORDER BY id;
SELECT * FROM k2;
CREATE TABLE k3 (id int);
CREATE TABLE IF NOT EXISTS k3 (id int);
CREATE TABLE k4 (id int, id int);
CREATE TABLE k4 (id nosuch);
CREATE TABLE k4 (id int PRIMARY KEY, n int CHECK (n > 0));
CREATE TABLE k5 (id int PRIMARY KEY, n int DEFAULT 'x');
CREATE TABLE nosuch.k6 (id int);
CREATE TABLE kk (a int, b text, PRIMARY KEY (a, b));
INSERT INTO kk VALUES (1, 'a'), (1, 'b') RETURNING *;
INSERT INTO kk VALUES (1, 'a');
INSERT INTO kk VALUES (1, NULL);
INSERT INTO kk VALUES (1, 'a'), (2, 'a') ON CONFLICT (a, b) DO UPDATE SET b = excluded.b || '!' RETURNING *;
DROP TABLE kk;
DROP TABLE kk;
DROP TABLE IF EXISTS kk;
DROP TABLE k2, k3;
DROP SCHEMA nosuch;
CREATE SCHEMA diff_dml;
CREATE SCHEMA IF NOT EXISTS diff_dml;
DROP TABLE k4;
DROP SCHEMA diff_dml;
CREATE SCHEMA diff_dml2;
CREATE TABLE diff_dml2.t (id int);
DROP SCHEMA diff_dml2;
DROP SCHEMA diff_dml2 CASCADE;
CREATE SCHEMA diff_dml2;
CREATE TABLE diff_dml2.t (id int);
CREATE VIEW diff_dml2.v AS SELECT 1 AS x;
DROP SCHEMA diff_dml2 CASCADE;
CREATE TABLE ix (id bigint PRIMARY KEY, f real, d double precision, c char(4), iv interval, ba bytea[], na numeric(6,2)[], da date[], tza timestamptz[], ja jsonb[], ua uuid[], bo bool[]);
INSERT INTO ix VALUES (1, 1.1, 2.2, 'ab', '1 day', '{"\\x00ff",NULL}', '{1.10,NULL}', '{2026-01-01}', '{"2026-01-01 00:00:00+00"}', '{"{\"a\": 1}"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{t,f,NULL}') RETURNING *;
SELECT * FROM ix;
SELECT ba::text, na::text, da::text, tza::text, ja::text, ua::text, bo::text FROM ix;
SELECT ba[1], na[1] + 1, da[1] + 1, tza[1], ja[1] -> 'a', ua[1], bo[2] FROM ix WHERE c = 'ab' AND c = 'ab  ' AND iv = '24:00:00';
UPDATE ix SET na = na || 2.5, da = array_append(da, date '2026-02-02'), bo = NULL RETURNING na, da, bo;
COPY ix TO STDOUT;
COPY ix TO STDOUT (FORMAT csv);
COPY (SELECT * FROM ix) TO STDOUT (FORMAT binary);
COPY ix FROM STDIN;
2	1e10	NaN	abcd	-1 days	{"\\\\x01"}	{}	{NULL}	{"2026-01-02 00:00:00+00"}	{"1","null"}	{}	{}
\.
SELECT * FROM ix ORDER BY id;
INSERT INTO ix (id, c) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET c = excluded.c || 'y' RETURNING c, length(c);
INSERT INTO ix (id, na) SELECT 3, array_agg(n) FROM generate_series(1, 3) n RETURNING na;
INSERT INTO ix SELECT id + 10, f, d, c, iv * 2, ba, na, da, tza, ja, ua, bo FROM ix WHERE id = 2 RETURNING *;
DELETE FROM ix WHERE id > 2 RETURNING id, iv;
