"""table_changes over tables that PyIceberg writes: every window is the difference of PyIceberg's own reads at its ends."""

import pyarrow as pa
import pytest
from changes import Judged
from conftest import Gateway
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("d", pa.float64()), ("n", pa.int32()), ("p", pa.string())])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pyiceberg")


@pytest.fixture(scope="module")
def catalog(folder):
    c = SqlCatalog("py", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/tables")
    c.create_namespace("s")
    yield c
    c.engine.dispose()


@pytest.fixture(scope="module")
def db(folder, tmp_path_factory):
    g = Gateway(tmp_path_factory.mktemp("changes") / "data", "--allow-root", folder).start()
    with g.connect() as c:
        yield c
    g.stop()
    code, out = g.check()
    assert code == 0, out


def batch(ids, name="row", schema=ARROW, **more):
    rows = [{"id": i, "name": None if i % 4 == 0 else f"{name} {i % 7}", "d": float("nan") if i % 5 == 0 else i / 2, "n": i % 3, "p": f"p{i % 3}", **more} for i in ids]
    return pa.Table.from_pylist([{k: v for k, v in r.items() if k in schema.names} for r in rows], schema=schema)


def states(table):
    out = []
    for s in sorted(table.snapshots(), key=lambda s: s.sequence_number):
        fields = [(f.field_id, f.name) for f in table.schemas()[s.schema_id].fields]
        rows = table.scan(snapshot_id=s.snapshot_id).to_arrow().select([n for _, n in fields])
        out.append((s.snapshot_id, fields, [list(r.values()) for r in rows.to_pylist()]))
    return out


@pytest.mark.parametrize("partitioned", [False, True])
def test_everything_that_pyiceberg_does(db, catalog, partitioned):
    name = "parted" if partitioned else "flat"
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()), NestedField(3, "d", DoubleType()), NestedField(4, "n", IntegerType()),
                    NestedField(5, "p", StringType()), identifier_field_ids=[1])
    spec = PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "p")) if partitioned else PartitionSpec()
    t = catalog.create_table(f"s.{name}", schema, partition_spec=spec, properties={"format-version": "2"})
    t.append(batch(range(1, 30)))
    t.append(batch(range(40, 60)))
    t.delete(EqualTo("id", 7))
    t.delete(EqualTo("name", "row 3"))
    t.overwrite(batch([41, 42, 77], name="over"), overwrite_filter=And(GreaterThanOrEqual("id", 41), LessThan("id", 46)))
    t.upsert(batch([1, 2, 100, 101], name="up"))
    t.upsert(batch([1, 2, 100, 101], name="up"))  # nothing new: matching rows that are equal stay
    if partitioned:
        t.dynamic_partition_overwrite(batch([3, 6, 9, 300], name="dynamic"))
    t.append(batch([]))  # a snapshot that changes nothing
    with t.transaction() as tx:  # several operations, several snapshots, one commit of the catalog
        tx.delete(EqualTo("id", 50))
        tx.append(batch([50, 51], name="again"))
    with t.update_schema() as u:
        u.add_column("extra", StringType())
        u.rename_column("name", "label")
        u.update_column("n", LongType())
    wide = pa.schema([ARROW.field("id"), ("label", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("extra", pa.string())])
    t.append(pa.Table.from_pylist([{"id": 200, "label": "wider", "n": 5_000_000_000, "p": "p1", "extra": "e"}], schema=wide))
    t.delete(EqualTo("id", 200) | EqualTo("id", 1))
    with t.update_schema() as u:
        u.delete_column("d")
    t.append(pa.Table.from_pylist([{"id": 201, "label": "last", "n": 1, "p": "p1", "extra": None}], schema=wide))
    t.overwrite(pa.Table.from_pylist([{"id": 1, "label": "all", "n": 1, "p": "p0", "extra": None}], schema=wide))

    db.execute("SELECT skade.register_table(%s, %s)", (name, t.metadata_location))
    Judged(db, name, "id", states(t)).all_windows()
    # Without its key, row by row.
    u = catalog.create_table(f"s.{name}_log", Schema(*[NestedField(f.field_id, f.name, f.field_type) for f in schema.fields]), partition_spec=spec, properties={"format-version": "2"})
    loose = pa.schema([f.with_nullable(True) for f in ARROW])
    for rows in ([1, 1, 2, 5, 5], [5, 9]):
        u.append(batch(rows, schema=loose))
    u.delete(EqualTo("id", 5))
    u.append(batch([1, 5], schema=loose))
    u.overwrite(batch([1, 1, 1], schema=loose), overwrite_filter=EqualTo("id", 1))
    db.execute("SELECT skade.register_table(%s, %s)", (name + "_log", u.metadata_location))
    Judged(db, name + "_log", None, states(u)).all_windows()
