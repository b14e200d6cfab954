"""Metadata tables in SQL against PyIceberg's inspect, branches and tags against PyIceberg's readers."""

import datetime
import json

import pytest
from pyiceberg.table import StaticTable


def location(db, table):
    return db.execute("SELECT file FROM skade.metadata_log WHERE table_schema = 'public' AND table_name = %s ORDER BY file DESC LIMIT 1", (table,)).fetchone()[0]


def plain(v):
    """A value of PyIceberg as SQL's jsonb, arrays and timestamps have it."""
    if isinstance(v, bytes):
        return "\\x" + v.hex()
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=datetime.timezone.utc) if v.tzinfo is None else v
    if isinstance(v, datetime.date):
        return v.isoformat()
    if isinstance(v, dict):
        maps = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
        return {str(k): {} if k in maps and x == [] else plain(x) for k, x in v.items()}
    if isinstance(v, list):
        if v and all(isinstance(x, tuple) and len(x) == 2 for x in v):  # pyarrow's map
            return {str(k): plain(x) for k, x in v}
        return [plain(x) for x in v]
    return v


def sql_rows(db, function, columns):
    cur = db.execute(f"SELECT {', '.join(columns)} FROM skade.{function}")
    return [dict(zip(columns, r)) for r in cur.fetchall()]


def same(db, function, want, key, skip=()):
    want = [plain({k: v for k, v in r.items() if k not in skip}) for r in want]
    columns = list(want[0])
    got = [plain(r) for r in sql_rows(db, function, ['"' + c + '"' for c in columns])]
    got = [{k.strip('"'): v for k, v in r.items()} for r in got]
    order = lambda r: json.dumps([r[k] for k in key], default=str, sort_keys=True)
    assert len(got) == len(want)
    for g, w in zip(sorted(got, key=order), sorted(want, key=order)):
        for column in columns:
            assert g[column] == w[column], column


@pytest.fixture(params=[2, 3])
def table(db, request):
    name = f"inspected_v{request.param}"
    db.execute(f"DROP TABLE IF EXISTS {name}")
    db.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, t text, d date, n int) WITH (format_version = {request.param})")
    for i in range(3):
        db.execute(f"INSERT INTO {name} SELECT n, 'row ' || n, date '2026-01-01' + n::int, n FROM generate_series({i * 100}, {i * 100 + 49}) n")
    db.execute(f"DELETE FROM {name} WHERE id % 7 = 0")
    db.execute(f"UPDATE {name} SET t = NULL WHERE id % 11 = 0")
    db.execute(f"SELECT skade.create_tag('{name}', 'v1', retain => '3 days'), skade.create_branch('{name}', 'b', min_snapshots_to_keep => 4)")
    return name


def test_inspect(db, table):
    t = StaticTable.from_metadata(location(db, table))
    i = t.inspect
    # committed_at: PyIceberg has milliseconds, the commit log microseconds
    same(db, f"snapshots('{table}')", i.snapshots().to_pylist(), ["snapshot_id"], skip=("committed_at",))
    for sql, py in db.execute(f"SELECT committed_at, snapshot_id FROM skade.snapshots('{table}')").fetchall():
        at = next(r["committed_at"] for r in i.snapshots().to_pylist() if r["snapshot_id"] == py)
        assert abs((sql - plain(at)).total_seconds()) < 0.001
    same(db, f"refs('{table}')", i.refs().to_pylist(), ["name"])
    same(db, f"history('{table}')", i.history().to_pylist(), ["made_current_at", "snapshot_id"])
    same(db, f"manifests('{table}')", i.manifests().to_pylist(), ["path"])
    same(db, f"metadata_log('{table}')", i.metadata_log_entries().to_pylist(), ["file"])
    same(db, f"partitions('{table}')", i.partitions().to_pylist(), ["record_count"])
    same(db, f"files('{table}')", i.files().to_pylist(), ["file_path", "record_count"])
    same(db, f"delete_files('{table}')", i.delete_files().to_pylist(), ["file_path", "record_count"])


def test_inspect_as_of(db, table):
    t = StaticTable.from_metadata(location(db, table))
    first = t.metadata.snapshots[0].snapshot_id
    same(db, f"files('{table}', {first})", t.inspect.files(first).to_pylist(), ["file_path"])
    same(db, f"partitions('{table}', {first})", t.inspect.partitions(first).to_pylist(), ["record_count"])
    # PyIceberg cannot show the entries of delete files without column sizes.
    entries = t.inspect.entries(first).to_pylist()
    same(db, f"entries('{table}', {first})", entries, ["sequence_number", "status", "snapshot_id"], skip=("data_file", "readable_metrics"))
    got = db.execute(f"SELECT data_file FROM skade.entries('{table}', {first})").fetchall()
    keys = ["file_path", "record_count", "content"]
    want = [{k: plain(v) for k, v in e["data_file"].items()} for e in entries]
    have = [{k: v for k, v in r[0].items() if k in want[0]} for r in got]
    order = lambda r: [str(r[k]) for k in keys]
    for w, h in zip(sorted(want, key=order), sorted(have, key=order)):
        for k in keys + ["file_size_in_bytes", "partition", "file_format"]:
            assert w[k] == h[k], k


def rows(scan):
    return sorted(r["id"] for r in scan.to_arrow().to_pylist())


def test_branches_and_tags_are_read_by_pyiceberg(db, table):
    before = [r[0] for r in db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]
    db.execute("SET skade.branch = 'b'")
    db.execute(f"INSERT INTO {table} VALUES (5000, 'on b', NULL, 1)")
    db.execute(f"DELETE FROM {table} WHERE id < 20")
    on_b = [r[0] for r in db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]
    db.execute("RESET skade.branch")
    db.execute(f"DELETE FROM {table} WHERE id > 100")
    on_main = [r[0] for r in db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]
    t = StaticTable.from_metadata(location(db, table))
    head = {n: r.snapshot_id for n, r in t.metadata.refs.items()}
    assert rows(t.scan()) == on_main
    assert rows(t.scan(snapshot_id=head["b"])) == on_b
    assert rows(t.scan(snapshot_id=head["v1"])) == before
    assert t.metadata.refs["v1"].max_ref_age_ms == 3 * 86400 * 1000
    # A rollback, then maintenance: the same rows in few files.
    db.execute(f"SELECT skade.rollback_to('{table}', 'v1')")
    db.execute(f"VACUUM FULL {table}")
    t = StaticTable.from_metadata(location(db, table))
    assert rows(t.scan()) == before
    assert rows(t.scan(snapshot_id=head["b"])) == on_b
    assert len(t.inspect.files().to_pylist()) == 1
