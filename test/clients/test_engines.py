"""Another Iceberg engine reads what SQL shows, from the files alone."""

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable


def metadata(db, table):
    return db.execute("SELECT metadata_location FROM skade.commits WHERE table_name = %s AND metadata_location IS NOT NULL ORDER BY commit_seq DESC LIMIT 1",
                      ("public." + table,)).fetchone()[0]


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_the_same_rows(db, version):
    name = f"engines_v{version}"
    db.execute(f"""CREATE TABLE {name} (id bigint PRIMARY KEY, b boolean, i int, r real, d double precision, n numeric(12,2), t text, ts timestamp,
        tz timestamptz, dt date, tm time, u uuid, by bytea, a int[]) WITH (format_version = {version})""")
    db.execute(f"""INSERT INTO {name} SELECT n, n % 2 = 0, n, n / 4.0, n / 8.0, n * 1.25, 'row ' || n, timestamp '2026-01-01' + n * interval '1 second',
        timestamptz '2026-01-01 00:00+00' + n * interval '1 minute', date '2026-01-01' + n::int, time '10:11:12', '00000000-0000-4000-8000-000000000001'::uuid,
        '\\x00ff'::bytea, ARRAY[n::int, NULL] FROM generate_series(1, 3000) n""")
    db.execute(f"DELETE FROM {name} WHERE id % 3 = 0")
    db.execute(f"UPDATE {name} SET t = 'changed', n = NULL WHERE id % 5 = 0")
    db.execute(f"INSERT INTO {name} (id, t) VALUES (7, 'upserted'), (9999, 'new') ON CONFLICT (id) DO UPDATE SET t = excluded.t")
    cols = "id, b, i, r, d, n, t, ts, tz, dt, tm, u::text, by, a"
    want = db.execute(f"SELECT {cols} FROM {name} ORDER BY id").fetchall()
    got = StaticTable.from_metadata(metadata(db, name)).scan().to_arrow().sort_by("id").to_pylist()
    assert len(got) == len(want) == 2001

    def plain(v):
        if isinstance(v, bytes) and len(v) == 16:
            import uuid
            return str(uuid.UUID(bytes=v))
        return str(v) if type(v).__name__ == "UUID" else v
    for w, g in zip(want, got):
        assert list(w) == [plain(v) for v in g.values()], (w, g)
