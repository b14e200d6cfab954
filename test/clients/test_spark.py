"""Iceberg's Java library reads what we write, after each kind of statement; we read, follow and change what it writes."""

import collections

import pytest
from conftest import Gateway
from pyiceberg.table import StaticTable
from spark import Spark, bag


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    s = Spark(tmp_path_factory.mktemp("spark"))
    yield s
    s.stop()


@pytest.fixture(scope="module")
def served(spark, tmp_path_factory):
    g = Gateway(tmp_path_factory.mktemp("judged") / "data", "--allow-root", spark.folder).start()
    yield g
    g.stop()
    code, out = g.check()
    assert code == 0, out


@pytest.fixture
def db(served):
    with served.connect() as c:
        yield c


def location(db, table):
    return db.execute("SELECT metadata_location FROM skade.commits WHERE table_name = %s AND metadata_location IS NOT NULL ORDER BY commit_seq DESC LIMIT 1",
                      ("public." + table,)).fetchone()[0]


def ours(db, table, columns="*"):
    return bag(db.execute(f"SELECT {columns} FROM {table}").fetchall())


def pyiceberg_rows(where, columns):
    table = StaticTable.from_metadata(where).scan(selected_fields=tuple(columns)).to_arrow().select(columns)
    uuids = [str(f.field_type) == "uuid" for f in (StaticTable.from_metadata(where).schema().find_field(c) for c in columns)]
    import uuid
    return bag([[uuid.UUID(bytes=v) if u and isinstance(v, bytes) else v for v, u in zip(row.values(), uuids)] for row in table.to_pylist()])


COLUMNS = {"id": "bigint PRIMARY KEY", "b": "boolean", "i": "int", "r": "real", "d": "double precision", "n": "numeric(12,2)", "wide": "numeric(38,9)", "t": "text",
           "v": "varchar(40)", "ts": "timestamp", "tz": "timestamptz", "dt": "date", "u": "uuid", "by": "bytea", "a": "int[]", "ta": "text[]"}

STATEMENTS = [
    """INSERT INTO {t} SELECT n, n % 2 = 0, n, n / 4.0, n / 8.0, n * 1.25, n * 1000000000000.123456789, 'row ' || n, 'v' || n, timestamp '2026-01-01' + n * interval '1 microsecond',
        timestamptz '2026-01-01 00:00+00' - n * interval '1 minute', date '1969-12-01' + n::int, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
        decode(lpad(to_hex(n), 8, '0'), 'hex'), ARRAY[n::int, NULL], ARRAY['a', NULL, ''] FROM generate_series(1, 200) n""",
    "INSERT INTO {t} (id) VALUES (1000)",
    """INSERT INTO {t} VALUES (1001, true, -2147483648, 'NaN', '-Infinity', -9999999999.99, -99999999999999999999999999999.999999999, '', 'ü€𝄞', '0001-01-01', '9999-12-31 23:59:59.999999+00',
        '0001-01-01', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '', '{{}}', '{{}}')""",
    "UPDATE {t} SET t = 'changed', n = NULL, tz = tz + interval '1 microsecond' WHERE id % 5 = 0",
    "DELETE FROM {t} WHERE id % 3 = 0",
    "INSERT INTO {t} (id, t) VALUES (7, 'upserted'), (9999, 'new') ON CONFLICT (id) DO UPDATE SET t = excluded.t",
    "BEGIN; INSERT INTO {t} (id, t) VALUES (5000, 'born'), (5001, 'stays'); DELETE FROM {t} WHERE id IN (5000, 8); UPDATE {t} SET i = 0 WHERE id = 5001; COMMIT",
    "COMMENT ON TABLE {t} IS 'judged'",
    "DELETE FROM {t} WHERE id BETWEEN 100 AND 150",
    "VACUUM {t}",
    "UPDATE {t} SET i = i + 1 WHERE id < 20",
    "UPDATE {t} x SET t = s.t, d = x.d + 1 FROM (VALUES (21, 'from'), (22, NULL)) s(id, t) WHERE x.id = s.id",
    "DELETE FROM {t} x USING (VALUES (23), (25), (77777)) s(id) WHERE x.id = s.id",
    """MERGE INTO {t} x USING (VALUES (1, 'merged'), (2, 'gone'), (3000, 'made')) s(id, t) ON x.id = s.id WHEN MATCHED AND s.t = 'gone' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t = s.t WHEN NOT MATCHED THEN INSERT (id, t, b) VALUES (s.id, s.t, true)""",
    "WITH d AS (DELETE FROM {t} WHERE id BETWEEN 30 AND 34 RETURNING id, t) INSERT INTO {t} (id, t) SELECT id + 4000, t || '!' FROM d",
    ("COPY {t} (id, t, n, by) FROM STDIN", "6000\tcopied\t1.25\t\\\\x00ff\n6001\t\\N\t-0.01\t\\\\x\n"),
    # Columns come, go and change; what follows each writes under the new definition.
    "ALTER TABLE {t} ADD COLUMN extra int",
    "UPDATE {t} SET extra = id % 7 WHERE id < 50",
    "ALTER TABLE {t} ADD COLUMN given text DEFAULT 'gi''ven' NOT NULL, ADD COLUMN half numeric(5,1) DEFAULT 0.5",
    "INSERT INTO {t} (id, given, half) VALUES (6002, DEFAULT, DEFAULT), (6003, 'own', NULL)",
    "ALTER TABLE {t} ALTER COLUMN given SET DEFAULT 'other', ALTER COLUMN half DROP DEFAULT, ALTER COLUMN i SET DEFAULT 42",
    "INSERT INTO {t} (id) VALUES (6004)",
    "ALTER TABLE {t} ADD COLUMN made timestamptz DEFAULT now()",
    "ALTER TABLE {t} ADD COLUMN numbered serial",
    "ALTER TABLE {t} ALTER COLUMN i TYPE bigint, ALTER COLUMN r TYPE double precision, ALTER COLUMN n TYPE numeric(20,2), ALTER COLUMN v TYPE text",
    "INSERT INTO {t} (id, i, r, n) VALUES (6005, 9223372036854775807, 0.1, 123456789012345678.99)",
    "ALTER TABLE {t} ADD COLUMN doubled bigint GENERATED ALWAYS AS (extra * 2) STORED",
    "UPDATE {t} SET extra = 100 WHERE id BETWEEN 6000 AND 6002",
    "ALTER TABLE {t} ALTER COLUMN dt TYPE timestamp, ALTER COLUMN u TYPE text USING upper(u::text)",
    "INSERT INTO {t} (id, dt, u) VALUES (6006, '2026-05-05 05:05:05.000005', 'text')",
    "UPDATE {t} SET b = false WHERE b IS NULL; ALTER TABLE {t} ALTER COLUMN b SET NOT NULL",
    "INSERT INTO {t} (id, b) VALUES (6007, true)",
    "ALTER TABLE {t} ALTER COLUMN b DROP NOT NULL, ALTER COLUMN given DROP NOT NULL",
    "INSERT INTO {t} (id, b, given) VALUES (6008, NULL, NULL)",
    "ALTER TABLE {t} RENAME COLUMN extra TO more",
    "UPDATE {t} SET more = more + 1 WHERE id = 6001",
    "ALTER TABLE {t} DROP COLUMN a, DROP COLUMN more CASCADE, ADD COLUMN more text DEFAULT 'again'",
    "UPDATE {t} SET more = 'changed' WHERE id % 10 = 1",
    "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0), DROP CONSTRAINT {t}_pkey",
    "INSERT INTO {t} (id, t) VALUES (6008, 'twice')",
    "DELETE FROM {t} WHERE id = 6008; ALTER TABLE {t} DROP CONSTRAINT positive, ADD PRIMARY KEY (id)",
    "INSERT INTO {t} (id, t) VALUES (6007, 'key again') ON CONFLICT (id) DO UPDATE SET t = excluded.t",
    "COMMENT ON COLUMN {t}.t IS 'a column'",
    # The layout changes; files from before keep theirs.
    "ALTER TABLE {t} SET (partitioning = 'bucket(4, id), day(ts)', sort_order = 'i DESC, t')",
    "INSERT INTO {t} (id, ts, t) SELECT n, timestamp '2026-03-01' + n * interval '7 hours', 'partitioned' FROM generate_series(7000, 7020) n",
    "UPDATE {t} SET t = 'moved', ts = ts + interval '1 day' WHERE id IN (1, 7000, 7001, 6005)",
    "DELETE FROM {t} WHERE id IN (4, 7002, 7003)",
    "ALTER TABLE {t} SET (partitioning = 'truncate(2, t), month(tz)')",
    "INSERT INTO {t} (id, t, tz) VALUES (7100, 'truncated', now()), (7101, NULL, NULL)",
    "ALTER TABLE {t} DROP COLUMN ts",  # a column of an older spec
    "UPDATE {t} SET d = 1 WHERE id IN (1, 7004, 7005, 7100)",
    "ALTER TABLE {t} ALTER COLUMN tz TYPE timestamp USING tz AT TIME ZONE 'UTC'",  # a column of the spec: it goes on under a new field
    "INSERT INTO {t} (id, tz) VALUES (7102, '2026-07-07')",
    "ALTER TABLE {t} DROP COLUMN t",
    "DELETE FROM {t} WHERE id IN (5, 7006, 7101); INSERT INTO {t} (id, tz) VALUES (7103, '2026-08-08')",
    "ALTER TABLE {t} RESET (partitioning)",
    "UPDATE {t} SET d = 2 WHERE id IN (7, 7007, 7102)",
    "ALTER TABLE {t} RENAME TO elsewhere; UPDATE elsewhere SET d = 3 WHERE id = 7008; ALTER TABLE elsewhere RENAME TO {t}",
    "CREATE SCHEMA s_{t}; ALTER TABLE {t} SET SCHEMA s_{t}; DELETE FROM s_{t}.{t} WHERE id = 7009; ALTER TABLE s_{t}.{t} SET SCHEMA public",
    "ALTER TABLE {t} SET (format_version = 3)",
    "UPDATE {t} SET d = 4 WHERE id IN (8, 7010, 7103)",
    "DELETE FROM {t} WHERE id IN (10, 7011)",
    "BEGIN; ALTER TABLE {t} ADD COLUMN late int DEFAULT 5; UPDATE {t} SET late = 6 WHERE id = 1; SAVEPOINT s; ALTER TABLE {t} DROP COLUMN late; ROLLBACK TO s; COMMIT",
    "VACUUM FULL {t}",
    "TRUNCATE {t}",
    "INSERT INTO {t} (id, d) VALUES (1, 5)",
]


def execute(db, statement):
    if isinstance(statement, str):
        db.execute(statement)
        return
    with db.cursor() as cur, cur.copy(statement[0]) as copy:
        copy.write(statement[1])


@pytest.mark.parametrize("version", [2, 3])
def test_statements_are_read(db, spark, version):
    judge_statements(db, spark, version, f"judged_v{version}", 7)


@pytest.mark.full
@pytest.mark.parametrize("version", [2, 3])
def test_iceberg_java_reads_every_statement(db, spark, version):
    judge_statements(db, spark, version, f"all_v{version}", 1)


def judge_statements(db, spark, version, name, every):
    """PyIceberg reads after each statement, Spark after every so many and the last."""
    db.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in COLUMNS.items())}) WITH (format_version = {version})")
    for n, statement in enumerate(STATEMENTS, 1):
        statement = statement.format(t=name) if isinstance(statement, str) else (statement[0].format(t=name), statement[1])
        execute(db, statement)
        columns = [c.name for c in db.execute(f"SELECT * FROM {name} LIMIT 0").description]
        want, where = ours(db, name), location(db, name)
        if n % every == 0 or n == len(STATEMENTS):
            assert spark.read(where, ", ".join(f"`{c}`" for c in columns)) == [[*r] for r in want], statement
        assert pyiceberg_rows(where, columns) == want, statement
    for seq, in db.execute("SELECT DISTINCT commit_seq FROM skade.commits WHERE table_name = %s AND operation IN ('append', 'overwrite', 'delete') ORDER BY 1", ("public." + name,)).fetchall()[::7]:
        db.execute(f"SELECT count(*) FROM table_at('{name}', 'seq:{seq}')")  # the past stays readable


def test_iceberg_java_reads_every_table_of_ddl(db, spark):
    """Keyless tables, CREATE TABLE AS, renamed and moved ones, defaults."""
    db.execute("CREATE SCHEMA other")
    db.execute("CREATE TABLE plain (a int, a2 text DEFAULT 'x'); INSERT INTO plain VALUES (1), (1), (NULL); DELETE FROM plain WHERE a IS NULL")
    db.execute("CREATE TABLE made WITH (primary_key = 'a') AS SELECT n AS a, n::text AS s FROM generate_series(1, 10) n")
    db.execute("ALTER TABLE made RENAME TO made_2; DELETE FROM made_2 WHERE a = 3; ALTER TABLE made_2 SET SCHEMA other; INSERT INTO other.made_2 VALUES (11, 'z')")
    for name, table in {"public.plain": "plain", "other.made_2": "other.made_2"}.items():
        where = db.execute("SELECT metadata_location FROM skade.commits WHERE table_name = %s AND metadata_location IS NOT NULL ORDER BY commit_seq DESC LIMIT 1",
                           (name,)).fetchone()[0]
        assert spark.read(where) == ours(db, table), name


def changes(db, table, a, b, columns="*"):
    """The signed multiset of table_changes between two snapshots."""
    cur = db.execute(f"SELECT _change_type, {columns} FROM table_changes('{table}', {a or 'NULL'}, {b})")
    out = collections.Counter()
    for kind, *row in cur.fetchall():
        out[repr(bag([row]))] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    return {k: n for k, n in out.items() if n}


def difference(before, after):
    out = collections.Counter(repr([r]) for r in after)
    out.subtract(collections.Counter(repr([r]) for r in before))
    return {k: n for k, n in out.items() if n}


def judge_history(db, spark, table, theirs, key, columns):
    """Every snapshot's rows by time travel, and every change between two, are Spark's; every live key is found, every dead one not."""
    snapshots = spark.snapshots(theirs)
    before, seen, last = [], set(), None
    for s in snapshots:
        after = spark.rows(theirs, columns, snapshot=s)
        assert bag(db.execute(f"SELECT {columns} FROM table_at('{table}', {s})").fetchall()) == after
        assert changes(db, table, last, s, columns) == difference(before, after), (last, s)
        seen |= {repr(r[0]) for r in after}
        before, last = after, s
    assert ours(db, table, columns) == spark.rows(theirs, columns)
    live = {repr(r[0]): r for r in before}
    for k in sorted(seen):
        found = bag(db.execute(f"SELECT {columns} FROM lookup('{table}', {k}, key_columns => ARRAY['{key}'])").fetchall())
        assert found == [live[k]] if k in live else found == [], k
    return snapshots


def test_spark_writes_v2_and_we_read_follow_and_write(db, spark):
    t = "j.s.deletes"
    spark.sql(f"""CREATE TABLE {t} (id int NOT NULL, name string, n decimal(12,2), at timestamp, tags array<string>, p string) USING iceberg PARTITIONED BY (p)
        TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')""")
    spark.sql(f"ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    spark.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('row ', id), id * 1.5, timestamp_micros(1700000000000000 + id), array('x', NULL), concat('p', id % 3) FROM range(1, 41)")
    spark.sql(f"DELETE FROM {t} WHERE id IN (3, 4, 5, 17)")               # position deletes
    spark.sql(f"UPDATE {t} SET name = 'updated' WHERE id IN (6, 7)")       # position deletes and new rows
    spark.sql(f"MERGE INTO {t} t USING (SELECT 8 AS id, 'merged' AS name UNION ALL SELECT 100, 'new') s ON t.id = s.id "
              "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 'p9')")
    where = spark.metadata(t)
    db.execute("SELECT skade.register_table('from_spark', %s)", (where,))
    columns = "id, name, n, at, tags, p"
    judge_history(db, spark, "from_spark", t, "id", columns)

    db.execute("UPDATE from_spark SET name = 'by us', n = n + 1 WHERE id < 10")
    db.execute("INSERT INTO from_spark (id, name, p) VALUES (8, 'ours', 'p2'), (200, 'ours', 'new') ON CONFLICT (id) DO UPDATE SET name = excluded.name, p = excluded.p")
    db.execute("DELETE FROM from_spark WHERE id > 30 AND p = 'p1'")
    assert spark.read(location(db, "from_spark"), columns) == ours(db, "from_spark", columns)
    assert pyiceberg_rows(location(db, "from_spark"), columns.split(", ")) == ours(db, "from_spark", columns)
    db.execute("VACUUM from_spark")
    assert spark.read(location(db, "from_spark"), columns) == ours(db, "from_spark", columns)


def test_iceberg_java_writes_equality_deletes(db, spark):
    t = "j.s.equality"
    spark.sql(f"CREATE TABLE {t} (id int NOT NULL, name string) USING iceberg TBLPROPERTIES ('format-version'='2')")
    spark.sql(f"ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    spark.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('row ', id % 4) FROM range(1, 21)")
    spark.equality_delete(t, ("id", [2, 3, 999]))
    spark.sql(f"INSERT INTO {t} VALUES (2, 'again')")
    spark.equality_delete(t, ("name", ["row 1", None]))
    spark.sql(f"INSERT INTO {t} VALUES (1, 'row 1')")
    db.execute("SELECT skade.register_table('equality', %s)", (spark.metadata(t),))
    judge_history(db, spark, "equality", t, "id", "id, name")
    db.execute("UPDATE equality SET name = 'ours' WHERE id IN (2, 4)")
    db.execute("INSERT INTO equality VALUES (3, 'back')")
    db.execute("DELETE FROM equality WHERE id = 6")
    assert spark.read(location(db, "equality")) == ours(db, "equality")


def test_spark_writes_deletion_vectors(db, spark):
    t = "j.s.vectors"
    spark.sql(f"""CREATE TABLE {t} (id int NOT NULL, name string) USING iceberg
        TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')""")
    spark.sql(f"ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    spark.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('row ', id) FROM range(1, 31)")
    spark.sql(f"DELETE FROM {t} WHERE id % 7 = 0")
    spark.sql(f"DELETE FROM {t} WHERE id % 5 = 0")
    spark.sql(f"UPDATE {t} SET name = 'updated' WHERE id = 1")
    db.execute("SELECT skade.register_table('vectors', %s)", (spark.metadata(t),))
    judge_history(db, spark, "vectors", t, "id", "id, name")
    db.execute("UPDATE vectors SET name = 'ours' WHERE id IN (1, 2)")
    db.execute("DELETE FROM vectors WHERE id = 3")
    db.execute("INSERT INTO vectors VALUES (7, 'back')")
    where = location(db, "vectors")
    assert spark.read(where) == ours(db, "vectors")
    assert pyiceberg_rows(where, ["id", "name"]) == ours(db, "vectors")
    # Row lineage goes on: ids are unique, and a changed row keeps its own.
    name = spark.register(where)
    ids = [r[0] for r in spark.sql(f"SELECT _row_id FROM {name}")]
    assert None not in ids and len(set(ids)) == len(ids)
    kept = spark.sql(f"SELECT _row_id FROM {t} WHERE id = 2")[0][0]
    assert spark.sql(f"SELECT _row_id FROM {name} WHERE id = 2")[0][0] == kept


def test_a_catalog_of_java_is_mounted_and_followed(db, spark):
    t = "j.s.followed"
    spark.sql(f"CREATE TABLE {t} (id int NOT NULL, name string) USING iceberg TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')")
    spark.sql(f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    # Tables that are registered here already have their uuid: they are named as trouble, the others are there.
    db.execute("SELECT skade.mount('java', %s, poll => '1 hour')", (str(spark.database),))
    table = '"java.s".followed'
    assert ours(db, table) == spark.rows(t)
    seq = db.execute("SELECT skade.current_commit_seq()").fetchone()[0]
    spark.sql(f"DELETE FROM {t} WHERE id = 2")
    spark.sql(f"INSERT INTO {t} VALUES (4, 'd')")
    db.execute("SELECT skade.refresh_mount('java')")
    assert ours(db, table) == spark.rows(t)
    assert db.execute(f"SELECT _change_type, id FROM table_changes('{table}', 'seq:{seq}', NULL)").fetchall() == [("DELETE", 2), ("INSERT", 4)]
    db.execute("SELECT skade.unmount('java')")
