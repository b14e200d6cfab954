-- What the fuzzer found.
CREATE TABLE acc (id int PRIMARY KEY, v int CHECK (v >= 0), g int GENERATED ALWAYS AS (v * 2) STORED);
INSERT INTO acc VALUES (1, 10), (2, 20), (3, 30);
-- ON CONFLICT: a row counts as affected when it was written, not when it was looked at; rows of one key come one after the other.
INSERT INTO acc VALUES (1, 5), (9, -1) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *;
INSERT INTO acc VALUES (1, 5), (1, 6) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE acc.v > 100 RETURNING *;
INSERT INTO acc VALUES (1, 5), (1, 6) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE excluded.v = 6 RETURNING *;
INSERT INTO acc VALUES (7, 5), (7, 6) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE false RETURNING *;
INSERT INTO acc VALUES (1, 5), (1, 7) ON CONFLICT (id) DO UPDATE SET id = acc.id + 40, v = excluded.v RETURNING *;
INSERT INTO acc VALUES (1, 5), (1, 7) ON CONFLICT (id) DO UPDATE SET id = acc.id RETURNING *;
INSERT INTO acc VALUES (2, 1), (62, 1) ON CONFLICT (id) DO UPDATE SET id = 62 RETURNING *;
INSERT INTO acc VALUES (2, 1) ON CONFLICT (id) DO UPDATE SET id = NULL;
INSERT INTO acc VALUES (NULL, 1) ON CONFLICT (id) DO UPDATE SET v = 1;
INSERT INTO acc VALUES (NULL, 1) ON CONFLICT (id) DO NOTHING;
UPDATE acc SET id = NULL WHERE id = 2;
SELECT * FROM acc ORDER BY id;
CREATE TABLE nk (a int, b text);
INSERT INTO nk VALUES (1, 'x'), (1, 'x') ON CONFLICT DO NOTHING;
INSERT INTO nk VALUES (1, 'x') ON CONFLICT (a) DO NOTHING;
INSERT INTO nk VALUES (1, 'x') ON CONFLICT ON CONSTRAINT nk_pkey DO NOTHING;
SELECT * FROM nk ORDER BY a;
-- A cursor reads what there was when it was declared, and ends with its savepoint.
BEGIN;
DECLARE c1 CURSOR FOR SELECT * FROM nk ORDER BY a, b;
INSERT INTO nk VALUES (0, 'later');
FETCH ALL FROM c1;
SAVEPOINT z;
DECLARE c2 CURSOR FOR SELECT * FROM nk ORDER BY a, b;
FETCH 1 FROM c2;
ROLLBACK TO z;
FETCH 1 FROM c2;
ROLLBACK TO z;
DECLARE c3 CURSOR FOR SELECT 1 / (a - a) FROM nk;
FETCH ALL FROM c3;
ROLLBACK;
-- CHECK constraints are read again when a column's type changes; those that are NOT VALID leave old rows alone.
CREATE TABLE ck (id int PRIMARY KEY, a int CHECK (a <> 2), b text, c int CHECK (c > 0));
INSERT INTO ck VALUES (1, 1, 'a', 5);
ALTER TABLE ck ALTER COLUMN a TYPE text;
ALTER TABLE ck ALTER COLUMN c TYPE timestamptz USING now();
ALTER TABLE ck ALTER COLUMN c TYPE bigint USING -c;
ALTER TABLE ck ALTER COLUMN c TYPE bigint USING c * 2, ALTER COLUMN c TYPE text;
ALTER TABLE ck ALTER COLUMN c TYPE bigint USING c * 2;
ALTER TABLE ck ALTER COLUMN b TYPE char(3) USING NULL, ADD CONSTRAINT ck2 CHECK (b IS NOT NULL) NOT VALID;
ALTER TABLE ck ADD COLUMN d bytea DEFAULT 'abc' NOT NULL, ADD CONSTRAINT ck3 CHECK (c IN (1, 2));
INSERT INTO ck VALUES (2, 2, 'b', 1);
INSERT INTO ck VALUES (2, 1, NULL, 1);
SELECT * FROM ck ORDER BY id;
-- A default that is no value of its column is an error where a row takes it.
CREATE TABLE df (id int PRIMARY KEY, a char(3) DEFAULT 'abcd', b int);
ALTER TABLE df ALTER COLUMN b SET DEFAULT 100000000000;
INSERT INTO df (id, a) VALUES (1, 'a');
INSERT INTO df (id, b) VALUES (1, 1);
CREATE TABLE dn (id int PRIMARY KEY, a int DEFAULT NULL, b text);
ALTER TABLE dn ALTER COLUMN b SET DEFAULT NULL;
ALTER TABLE dn ADD COLUMN c int DEFAULT NULL::int;
ALTER TABLE dn ALTER COLUMN a TYPE uuid USING NULL, ALTER COLUMN c TYPE date USING NULL;
-- Literals of a CHECK keep their types.
CREATE TABLE ct (id varchar(6) PRIMARY KEY CHECK (id <= 'abc   '), d date CHECK (d <= '2030-01-01'), n int);
INSERT INTO ct VALUES ('a', '2026-01-01', 7);
ALTER TABLE ct ALTER COLUMN id TYPE int USING n;
ALTER TABLE ct ALTER COLUMN d TYPE text;
SELECT * FROM ct;
INSERT INTO ct VALUES (9, '2026-01-01', 7), (8, '2031-01-01', 7);
-- Arrays between constants; a NULL that is folded keeps its column's type.
CREATE TABLE ar (f int[], g int);
INSERT INTO ar VALUES ('{1,2}', 1), ('{1,NULL,3}', 2), ('{}', 3), (NULL, 4), ('{2}', 5);
SELECT g FROM ar WHERE f BETWEEN ARRAY[1,NULL,3] AND ARRAY[2] ORDER BY g;
SELECT g FROM ar WHERE f BETWEEN '{}' AND '{}' ORDER BY g;
SELECT g FROM ar WHERE f NOT BETWEEN '{1}' AND '{2}' ORDER BY g;
INSERT INTO nk SELECT g, (coalesce('', 'none') || NULL) FROM ar;
INSERT INTO nk SELECT NULL, NULL FROM ar WHERE g = 1;
UPDATE nk SET b = 'x' || NULL WHERE a = 1;
