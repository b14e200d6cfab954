"""A table that PyIceberg writes is read, followed, changed and given back."""

import collections
import datetime
import decimal

import pyarrow as pa
import pytest
from conftest import Gateway
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import (BinaryType, DecimalType, IntegerType, ListType, LongType, NestedField, StringType, TimestamptzType, UUIDType)
from spark import bag

ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string()), pa.field("n", pa.decimal128(10, 2)),
                   pa.field("at", pa.timestamp("us", tz="UTC")), pa.field("by", pa.binary()), pa.field("tags", pa.list_(pa.string()))])
COLUMNS = "id, name, n, at, by, tags"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    return tmp_path_factory.mktemp("pyiceberg")


@pytest.fixture(scope="module")
def catalog(warehouse):
    c = SqlCatalog("py", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}/tables")
    c.create_namespace("s")
    yield c
    c.engine.dispose()


@pytest.fixture(scope="module")
def db(warehouse, tmp_path_factory):
    g = Gateway(tmp_path_factory.mktemp("registered") / "data", "--allow-root", warehouse).start()
    with g.connect() as c:
        yield c
    g.stop()
    code, out = g.check()
    assert code == 0, out


def batch(*ids, name="row"):
    rows = [{"id": i, "name": None if i % 4 == 0 else f"{name} {i}", "n": decimal.Decimal(i) / 4, "by": bytes([i % 256]), "tags": ["a", None] if i % 2 else None,
             "at": datetime.datetime(2026, 1, 1 + i % 3, tzinfo=datetime.timezone.utc)} for i in ids]
    return pa.Table.from_pylist(rows, schema=ARROW)


def schema(version):
    return Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()), NestedField(3, "n", DecimalType(10, 2)),
                  NestedField(4, "at", TimestamptzType()), NestedField(5, "by", BinaryType()),
                  NestedField(6, "tags", ListType(7, StringType(), element_required=False)), identifier_field_ids=[1])


def theirs(table, snapshot=None):
    return bag([list(r.values()) for r in table.scan(snapshot_id=snapshot, selected_fields=("id", "name", "n", "at", "by", "tags")).to_arrow().select(COLUMNS.split(", ")).to_pylist()])


def counted(rows):
    return collections.Counter(repr(r) for r in rows)


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_of_pyiceberg(db, catalog, warehouse, partitioned):
    name = "parted" if partitioned else "flat"
    spec = PartitionSpec(PartitionField(4, 1000, DayTransform(), "day"), PartitionField(1, 1001, BucketTransform(4), "bucket")) if partitioned else PartitionSpec()
    t = catalog.create_table(f"s.{name}", schema(2), partition_spec=spec, properties={"format-version": "2"})
    t.append(batch(*range(1, 30)))
    t.append(batch(*range(40, 60)))
    t.delete(EqualTo("id", 7))
    t.overwrite(batch(41, 42, name="over"), overwrite_filter="id >= 41 and id <= 45")

    # Mounted: as they are there, and what changes there.
    db.execute("SELECT skade.mount('py', %s, poll => '1 hour')", (f"{warehouse}/catalog.db",))
    mounted = f'"py.s".{name}'
    assert bag(db.execute(f"SELECT {COLUMNS} FROM {mounted}").fetchall()) == theirs(t)
    seq = db.execute("SELECT skade.current_commit_seq()").fetchone()[0]
    t.append(batch(100, 101))
    db.execute("SELECT skade.refresh_mount('py')")
    assert db.execute(f"SELECT _change_type, id FROM table_changes('{mounted}', 'seq:{seq}', NULL) ORDER BY id").fetchall() == [("INSERT", 100), ("INSERT", 101)]
    db.execute("SELECT skade.unmount('py')")

    # Registered: every snapshot and every change between two.
    db.execute("SELECT skade.register_table(%s, %s)", (name, t.metadata_location))
    before, last = [], None
    for s in sorted(t.snapshots(), key=lambda s: s.sequence_number):
        after = theirs(t, s.snapshot_id)
        assert bag(db.execute(f"SELECT {COLUMNS} FROM table_at('{name}', {s.snapshot_id})").fetchall()) == after
        got = collections.Counter()
        for kind, *row in db.execute(f"SELECT _change_type, {COLUMNS} FROM table_changes('{name}', {last or 'NULL'}, {s.snapshot_id})").fetchall():
            got[repr(bag([row])[0])] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
        want = counted(after)
        want.subtract(counted(before))
        assert {k: n for k, n in got.items() if n} == {k: n for k, n in want.items() if n}
        before, last = after, s.snapshot_id
    live = {r[0] for r in before}
    for i in (1, 7, 41, 43, 100, 5000):
        assert len(db.execute(f"SELECT * FROM lookup('{name}', {i})").fetchall()) == (i in live)

    # Another schema, then replace the pointer.
    with t.update_schema() as u:
        u.add_column("extra", IntegerType())
        u.rename_column("name", "label")
    t.append(pa.Table.from_pylist([{"id": 200, "label": "wider", "extra": 5, "at": datetime.datetime(2026, 2, 2, tzinfo=datetime.timezone.utc)}],
                                  schema=pa.schema([ARROW.field("id"), ("label", pa.string()), ("extra", pa.int32()), ARROW.field("at")])))
    db.execute("SELECT skade.register_table(%s, %s, replace => true)", (name, t.metadata_location))
    wide = ["id", "label", "extra", "by"]
    want = bag([[r[c] for c in wide] for r in t.scan().to_arrow().to_pylist()])
    assert bag(db.execute(f"SELECT {', '.join(wide)} FROM {name}").fetchall()) == want

    # And changed here: PyIceberg reads it from our metadata file.
    db.execute(f"UPDATE {name} SET label = 'ours', extra = 1 WHERE id < 5")
    db.execute(f"INSERT INTO {name} (id, label) VALUES (41, 'ours'), (300, 'ours') ON CONFLICT (id) DO UPDATE SET label = excluded.label")
    db.execute(f"DELETE FROM {name} WHERE id BETWEEN 50 AND 55")
    where = db.execute("SELECT metadata_location FROM skade.commits WHERE table_name = %s ORDER BY commit_seq DESC LIMIT 1", ("public." + name,)).fetchone()[0]
    got = bag([[r[c] for c in wide] for r in StaticTable.from_metadata(where).scan().to_arrow().to_pylist()])
    assert got == bag(db.execute(f"SELECT {', '.join(wide)} FROM {name}").fetchall())

    # Handed back.
    location = db.execute(f"SELECT skade.unregister_table('{name}')").fetchone()[0]
    back = catalog.register_table(f"s.{name}_back", location)
    assert bag([[r[c] for c in wide] for r in back.scan().to_arrow().to_pylist()]) == got
