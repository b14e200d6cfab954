"""Three million flights through psql: loaded, aggregated, changed, looked up; every answer compared with DuckDB or with the rows themselves."""

import duckdb
import pytest

from conftest import SHARED

FLIGHTS = SHARED / "data" / "flights-3m.parquet"
AIRPORTS = SHARED / "data" / "airports.csv"

AGGREGATES = [
    "SELECT origin, count(*), sum(delay), min(distance), max(distance) FROM {f} GROUP BY origin ORDER BY origin",
    "SELECT date_trunc('month', date) AS m, count(*), sum(distance) FROM {f} GROUP BY 1 ORDER BY 1",
    "SELECT count(DISTINCT origin), count(DISTINCT destination), min(date), max(date) FROM {f}",
    "SELECT a.state, count(*), max(f.delay) FROM {f} f JOIN {a} a ON a.iata = f.origin GROUP BY a.state ORDER BY a.state",
    "SELECT extract(hour FROM date)::int AS h, sum(CASE WHEN delay > 15 THEN 1 ELSE 0 END), count(*) FROM {f} WHERE distance > 1000 GROUP BY 1 ORDER BY 1",
]


@pytest.fixture(scope="module")
def loaded(gateway):
    gateway.psql("""
        CREATE TABLE flights (date timestamp, delay bigint, distance bigint, origin varchar(3), destination varchar(3));
        CREATE TABLE airports (iata varchar(4) PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision);
        \\copy flights from '%s' with (format parquet)
        \\copy airports from '%s' with (format csv, header)
        CREATE TABLE keyed WITH (primary_key = 'id') AS
            SELECT row_number() OVER (ORDER BY date, origin, destination, delay, distance)::bigint AS id, * FROM flights;
    """ % (FLIGHTS, AIRPORTS))
    return gateway


@pytest.fixture(scope="module")
def duck():
    d = duckdb.connect()
    d.execute(f"CREATE VIEW f AS SELECT * FROM read_parquet('{FLIGHTS}')")
    d.execute(f"CREATE TABLE a AS SELECT * FROM read_csv('{AIRPORTS}', header = true, all_varchar = true)")
    return d


def text(rows):
    def one(v):
        return "" if v is None else str(v)
    return "\n".join("|".join(one(v) for v in r) for r in rows)


@pytest.mark.parametrize("sql", AGGREGATES)
@pytest.mark.parametrize("table", ["flights", "keyed"])
def test_aggregates_equal_duckdb(loaded, duck, sql, table):
    assert loaded.psql(sql.format(f=table, a="airports") + ";") == text(duck.execute(sql.format(f="f", a="a")).fetchall())


def test_counts(loaded, duck):
    n = duck.execute("SELECT count(*) FROM f").fetchone()[0]
    assert loaded.psql("SELECT count(*) FROM flights; SELECT count(*) FROM keyed;") == f"{n}\n{n}"
    assert loaded.psql("SELECT count(*) FROM airports;") == str(duck.execute("SELECT count(*) FROM a").fetchone()[0])


COLUMNS = "id, date, delay, distance, origin, destination"


def replay(db, before, after, seq):
    """R(from) − deletes + inserts = R(to), as multisets (L1), computed by the server over its own tables."""
    left = f"""
        SELECT {COLUMNS}, count(*) FILTER (WHERE s > 0) - count(*) FILTER (WHERE s < 0) AS n FROM (
            SELECT {COLUMNS}, 1 AS s FROM table_at('keyed', '{before}')
            UNION ALL
            SELECT {COLUMNS}, CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END FROM table_changes('keyed', '{before}', '{after}')
        ) x GROUP BY {COLUMNS} HAVING count(*) FILTER (WHERE s > 0) <> count(*) FILTER (WHERE s < 0)"""
    right = f"SELECT {COLUMNS}, count(*) AS n FROM table_at('keyed', '{after}') GROUP BY {COLUMNS}"
    diff = db.execute(f"SELECT count(*) FROM (({left} EXCEPT {right}) UNION ALL ({right} EXCEPT {left})) d").fetchone()[0]
    assert diff == 0


def seq(db):
    return "seq:%d" % db.execute("SELECT current_commit_seq()").fetchone()[0]


def test_changes_are_exactly_what_was_done(loaded):
    with loaded.connect() as db:
        s0 = seq(db)
        old = dict(db.execute("SELECT id, delay FROM keyed WHERE id BETWEEN 100001 AND 110000").fetchall())
        assert db.execute("UPDATE keyed SET delay = delay + 1000 WHERE id BETWEEN 100001 AND 110000").rowcount == 10000
        s1 = seq(db)
        got = db.execute(f"SELECT id, delay, _change_type FROM table_changes('keyed', '{s0}', '{s1}')").fetchall()
        assert len(got) == 20000
        for (bid, bdelay, btype), (aid, adelay, atype) in zip(got[0::2], got[1::2]):
            assert (btype, atype) == ("UPDATE_BEFORE", "UPDATE_AFTER") and bid == aid
            assert bdelay == old[bid] and adelay == old[bid] + 1000
        assert {r[0] for r in got} == set(range(100001, 110001))
        replay(db, s0, s1, None)

        gone = set(db.execute(f"SELECT {COLUMNS} FROM keyed WHERE id BETWEEN 200001 AND 205000").fetchall())
        assert db.execute("DELETE FROM keyed WHERE id BETWEEN 200001 AND 205000").rowcount == 5000
        s2 = seq(db)
        got = db.execute(f"SELECT {COLUMNS}, _change_type FROM table_changes('keyed', '{s1}', '{s2}')").fetchall()
        assert {r[:-1] for r in got} == gone and {r[-1] for r in got} == {"DELETE"} and len(got) == 5000
        replay(db, s1, s2, None)

        assert db.execute("""
            INSERT INTO keyed SELECT n, timestamp '2026-01-01', 7, 7, 'AAA', 'BBB' FROM generate_series(299001, 300000) n
            UNION ALL SELECT 10000000 + n, timestamp '2026-01-01', 7, 7, 'AAA', 'BBB' FROM generate_series(1, 1000) n
            ON CONFLICT (id) DO UPDATE SET date = excluded.date, delay = excluded.delay, distance = excluded.distance,
                origin = excluded.origin, destination = excluded.destination""").rowcount == 2000
        s3 = seq(db)
        got = db.execute(f"SELECT _change_type, count(*), min(id), max(id) FROM table_changes('keyed', '{s2}', '{s3}') GROUP BY 1 ORDER BY 1").fetchall()
        assert got == [("INSERT", 1000, 10000001, 10001000), ("UPDATE_AFTER", 1000, 299001, 300000), ("UPDATE_BEFORE", 1000, 299001, 300000)]
        replay(db, s2, s3, None)
        replay(db, s0, s3, None)

        # A lookup of an updated, a deleted, a new and an absent key, now and as of the earlier snapshot.
        def look(key, *as_of):
            return db.execute("SELECT id, delay FROM lookup('keyed', %s" % key + ("".join(", '%s'" % a for a in as_of)) + ")").fetchall()
        assert look(100001) == [(100001, old[100001] + 1000)] and look(100001, s0) == [(100001, old[100001])]
        assert look(200001) == [] and [r[0] for r in look(200001, s1)] == [200001]
        assert look(10000001) == [(10000001, 7)] and look(10000001, s2) == []
        assert look(99999999) == [] and look(99999999, s0) == []
        snapshot = db.execute("SELECT snapshot_at('keyed', %s::text)", (s0,)).fetchone()[0]
        assert look(100001, snapshot) == [(100001, old[100001])]
