"""table_changes over tables that Spark writes: every window is the difference of Spark's own reads at its ends, and Spark's own change log where that one works."""

import collections

import pytest
from changes import Judged, text
from conftest import Gateway
from spark import Spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    s = Spark(tmp_path_factory.mktemp("spark"))
    yield s
    s.stop()


@pytest.fixture(scope="module")
def db(spark, tmp_path_factory):
    g = Gateway(tmp_path_factory.mktemp("changes") / "data", "--allow-root", spark.folder).start()
    with g.connect() as c:
        yield c
    g.stop()
    code, out = g.check()
    assert code == 0, out


def fields_of(spark, table, snapshot):
    """(field id, name) of a snapshot's own schema, in order."""
    java = spark.java(table)
    schema = java.schemas().get(java.snapshot(snapshot).schemaId())
    return [(c.fieldId(), c.name()) for c in schema.columns()]


def lineage(spark, table):
    """The ancestors of the current snapshot, oldest first."""
    java = spark.java(table)
    s, out = java.currentSnapshot(), []
    while s is not None:
        out.append(s.snapshotId())
        s = java.snapshot(s.parentId()) if s.parentId() is not None else None
    return out[::-1]


def states(spark, table, snapshots):
    out = []
    for s in snapshots:
        fields = fields_of(spark, table, s)
        out.append((s, fields, spark.sql(f"SELECT {', '.join('`' + n + '`' for _, n in fields)} FROM {table} VERSION AS OF {s}")))
    return out


def create(spark, name, version, mode, keyed=True):
    t = f"j.s.{name}"
    spark.sql(f"""CREATE TABLE {t} (id int NOT NULL, name string, n decimal(12,2), small int, p string) USING iceberg TBLPROPERTIES ('format-version'='{version}',
        'write.delete.mode'='{mode}', 'write.update.mode'='{mode}', 'write.merge.mode'='{mode}', 'write.delete.granularity'='{"file" if version == 3 else "partition"}')""")
    if keyed:
        spark.sql(f"ALTER TABLE {t} SET IDENTIFIER FIELDS id")
    return t


MERGE = """MERGE INTO {t} t USING (SELECT 8 AS id, 'merged' AS name UNION ALL SELECT 100, 'new' UNION ALL SELECT 9, 'gone') s ON t.id = s.id
    WHEN MATCHED AND s.name = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 'p9')"""

# What a table of Spark's goes through; callables get (spark, table).
ROWS = [
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('row ', id % 9), id * 1.5, id % 5, concat('p', id % 3) FROM range(1, 41)",
    "DELETE FROM {t} WHERE id IN (3, 4, 17)",
    "UPDATE {t} SET name = 'updated', n = n + 1 WHERE id IN (5, 6, 7)",
    MERGE,
    lambda spark, t: spark.equality_delete(t, ("id", [10, 11, 999])),
    "INSERT INTO {t} VALUES (3, 'back', 3.00, NULL, 'p0'), (10, 'row 1', 15.00, 0, 'p1')",
    lambda spark, t: spark.equality_delete(t, ("name", ["row 2", None])),
    "DELETE FROM {t} WHERE id IN (5, 18, 19)",
]
SMOKE = ROWS + [
    "CALL j.system.rewrite_data_files(table => '{s}', options => map('rewrite-all', 'true'))",
    "UPDATE {t} SET small = small + 1 WHERE id > 30",
]
EVERYTHING = ROWS + [
    "CALL j.system.rewrite_position_delete_files(table => '{s}', options => map('rewrite-all', 'true'))",
    "DELETE FROM {t} WHERE id = 21",
    "CALL j.system.rewrite_data_files(table => '{s}', options => map('rewrite-all', 'true'))",
    "UPDATE {t} SET small = small + 1 WHERE id > 30",
    "CALL j.system.rewrite_manifests('{s}')",
    # Another partitioning: files of both specs, deletes over both.
    "ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'bucketed', 0, 1, 'q' FROM range(200, 210)",
    "DELETE FROM {t} WHERE id IN (22, 201, 202)",
    lambda spark, t: spark.sql(f"ALTER TABLE {t} REPLACE PARTITION FIELD bucket(2, id) WITH p"),
    "UPDATE {t} SET p = 'moved' WHERE id IN (23, 203, 204)",
    "DELETE FROM {t} WHERE p = 'q'",
    # Another schema: added, renamed, widened, dropped, moved.
    "ALTER TABLE {t} ADD COLUMN extra string AFTER id",
    "UPDATE {t} SET extra = 'x' WHERE id IN (24, 25)",
    "ALTER TABLE {t} RENAME COLUMN name TO label",
    "ALTER TABLE {t} ALTER COLUMN small TYPE bigint",
    "UPDATE {t} SET label = 'relabelled', small = 5000000000 WHERE id IN (24, 26)",
    "ALTER TABLE {t} DROP COLUMN n",
    "INSERT INTO {t} (id, label, p) VALUES (300, 'after', 'p1')",
    "ALTER TABLE {t} ADD COLUMN n string",
    "UPDATE {t} SET n = 'another field' WHERE id > 250",
    "DELETE FROM {t} WHERE id < 30",
    lambda spark, t: spark.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 35"),
    "TRUNCATE TABLE {t}",
    "INSERT INTO {t} (id, label, p) VALUES (1, 'last', 'p1')",
]


def perform(spark, t, steps):
    for step in steps:
        if callable(step):
            step(spark, t)
        else:
            spark.sql(step.format(t=t, s=t.removeprefix("j.")))


def judge(db, spark, t, name):
    """Registered: every window. Mounted: the same table as its catalog shows it."""
    every = states(spark, t, lineage(spark, t))
    db.execute("SELECT skade.register_table(%s, %s)", (name, spark.metadata(t)))
    j = Judged(db, name, "id", every)
    j.all_windows()
    # Its history again by places in the log, in one piece, and as shards.
    _, fields, _ = every[-1]
    whole, _ = j.changes(fields, "NULL", "NULL")
    parts = []
    for i in range(3):
        parts += j.changes(fields, "NULL", f"NULL, shard => '{i}/3'")[0]
    assert signed(whole) == signed(parts)
    db.execute(f"SELECT skade.unregister_table('{name}')")


def signed(rows):
    out = collections.Counter()
    for kind, row in rows:
        out[row] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    return {k: n for k, n in out.items() if n}


def test_merge_on_read(db, spark):
    t = create(spark, "mor_smoke", 2, "merge-on-read")
    perform(spark, t, SMOKE)
    judge(db, spark, t, "mor_smoke")


@pytest.mark.full
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_everything_that_spark_does(db, spark, version, mode):
    name = f"all_{version}_{mode[:4]}"
    t = create(spark, name, version, mode)
    perform(spark, t, EVERYTHING)
    judge(db, spark, t, name)


def changelog_view(spark, t, first, last, fields):
    """Spark's own change log of (first, last]: (snapshot, kind, row)."""
    bounds = f"'end-snapshot-id', '{last}'" + (f", 'start-snapshot-id', '{first}'" if first else "")
    spark.sql(f"CALL j.system.create_changelog_view(table => '{t.removeprefix('j.')}', changelog_view => 'theirs', options => map({bounds}), compute_updates => true, identifier_columns => array('id'))")
    rows = spark.sql(f"SELECT _commit_snapshot_id, _change_type, {', '.join('`' + n + '`' for _, n in fields)} FROM theirs")
    return collections.Counter((s, kind, text(row)) for s, kind, *row in rows)


def test_changelog_view_of_spark(db, spark):
    """Where Spark's own change log works (no delete files), ours has its rows, kind by kind and snapshot by snapshot."""
    t = create(spark, "cow_view", 2, "copy-on-write")
    perform(spark, t, [s for s in SMOKE if not callable(s)])
    every = states(spark, t, lineage(spark, t))
    db.execute("SELECT skade.register_table('cow_view', %s)", (spark.metadata(t),))
    Judged(db, "cow_view", "id", every).all_windows()
    _, fields, _ = every[-1]
    columns = ", ".join(n for _, n in fields)
    for first, last in [(None, -1), (0, -1), (1, 3), (2, len(every) - 2)]:
        a, b = None if first is None else every[first][0], every[last][0]
        ours = collections.Counter((s, kind, text(row)) for s, kind, *row in
                                   db.execute(f"SELECT _commit_snapshot_id, _change_type, {columns} FROM table_changes('cow_view', {a or 'NULL'}, {b})").fetchall())
        assert ours == changelog_view(spark, t, a, b, fields)


@pytest.mark.full
def test_branches_tags_and_expiry(db, spark):
    t = create(spark, "lines", 2, "merge-on-read")
    perform(spark, t, ROWS[:3])
    fork = lineage(spark, t)[-1]
    perform(spark, t, ["ALTER TABLE {t} CREATE TAG v1", "ALTER TABLE {t} CREATE BRANCH b", "INSERT INTO {t}.branch_b VALUES (500, 'on b', 1, 1, 'b')", "DELETE FROM {t}.branch_b WHERE id = 1",
                       "INSERT INTO {t} VALUES (600, 'on main', 2, 2, 'm')", "UPDATE {t} SET name = 'main' WHERE id = 2"])
    java = spark.java(t)
    head = java.refs().get("b").snapshotId()
    side = [head, java.snapshot(head).parentId()]
    db.execute("SELECT skade.register_table('lines', %s)", (spark.metadata(t),))
    main = states(spark, t, lineage(spark, t))
    Judged(db, "lines", "id", main).all_windows()
    forked = states(spark, t, [fork, side[1], side[0]])
    b = Judged(db, "lines", "id", forked)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        b.window(i, j)
    fields = forked[0][1]
    assert b.changes(fields, "'tag:v1'", "'branch:b'")[0] == b.changes(fields, fork, head)[0]
    both = Judged(db, "lines", "id", [forked[-1], main[-1]])
    want = both.rows(1, fields)
    want.subtract(both.rows(0, fields))
    assert signed(both.changes(fields, "'branch:b'", "'branch:main'", net=True)[0]) == {k: n for k, n in want.items() if n}
    with pytest.raises(Exception, match="is not an ancestor of"):
        db.execute("SELECT * FROM table_changes('lines', 'branch:b', 'branch:main')")

    # Expired there, then given to us: what is left is whole, what is not says so.
    spark.sql("CALL j.system.rollback_to_snapshot('s.lines', %d)" % main[-2][0])
    spark.sql("CALL j.system.expire_snapshots(table => 's.lines', older_than => TIMESTAMP '2100-01-01', retain_last => 2)")
    db.execute("SELECT skade.unregister_table('lines')")
    db.execute("SELECT skade.register_table('lines_after', %s)", (spark.metadata(t),))
    left = [s[0] for s in spark.sql(f"SELECT snapshot_id FROM {t}.snapshots")]
    kept = [s for s in main if s[0] in left]
    assert 2 <= len(kept) < len(main)
    j = Judged(db, "lines_after", "id", kept)
    ends = [n for n, s in enumerate(kept) if s[0] != fork]
    j.window(ends[0], ends[-1])
    gone = next(s[0] for s in main if s[0] not in left)
    with pytest.raises(Exception, match="no longer retained|has no snapshot"):
        db.execute(f"SELECT * FROM table_changes('lines_after', {gone})")
    with pytest.raises(Exception, match="no longer retained"):
        db.execute(f"SELECT * FROM table_changes('lines_after', NULL, {kept[-1][0]})")


@pytest.mark.full
def test_a_mounted_catalog_is_followed(db, spark):
    """Snapshots that another engine commits between two polls are changes here, in their order; the log's places name them."""
    t = create(spark, "mounted", 2, "merge-on-read")
    perform(spark, t, ROWS[:1])
    db.execute("SELECT skade.mount('theirs', %s, poll => '1 hour')", (str(spark.database),))
    table, seqs = '"theirs.s".mounted', []
    for steps in (ROWS[1:2], ROWS[2:4], ROWS[4:8]):
        seqs.append(db.execute("SELECT current_commit_seq()").fetchone()[0])
        perform(spark, t, steps)
        db.execute("SELECT skade.refresh_mount('theirs')")
    every = states(spark, t, lineage(spark, t))
    Judged(db, table, "id", every).all_windows()
    _, fields, _ = every[-1]
    j = Judged(db, table, "id", every)
    for seq, i in zip(seqs, (0, 1, 3)):
        got, sql = j.changes(fields, f"'seq:{seq}'", "NULL")
        assert got == j.changes(fields, every[i][0], every[-1][0])[0], sql
    db.execute("SELECT skade.unmount('theirs')")
