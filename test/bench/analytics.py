"""P1, P4, P6, P10: lookups in process, changes, scans, loading."""

import os
import re
import subprocess

import duckdb

from measure import Row, equal, geomean, ms, race, rate, timed
from peers import ROOT, ducklake, duck
from wire import COLUMNS, copy_in, rows_csv


P1_CASES = {  # of the benchmarks of package lookup: what, target a second, what limits it
    "Get/hot": ("1,000 hot keys", 300_000, "the hash of the key and one shard's lock"),
    "Get/uniform": ("uniformly random keys, no row cache", 20_000, "the walk over the files' bounds, the search in one key index, building the row"),
    "Get/absent": ("keys that are absent", None, "the walk over the files' bounds and the search in the indexes"),
    "Get/pages": ("uniformly random keys, a cache for a tenth of the pages", None, "a zstd page per column"),
    "GetText/hot": ("text key, 1,000 hot keys", None, "as of integers"),
    "GetText/uniform": ("text key, uniformly random, no row cache", None, "the index has fingerprints, the page the keys"),
    "GetText/absent": ("text key, absent", None, "as of integers"),
    "Cold": ("the first key of a process", None, "the live set is made: manifests and delete files; then one footer and one index"),
    "Reference/cached": ("the published figure's shape: 32 appends of 1,000 rows, 200 keys", None, "as hot keys: the rows are cached"),
    "Reference/uncached": ("the same without the row cache", 47_000, "as uniformly random keys"),
}
P1_PEER = "a published figure, not run here: 22.9 KB, 1.56 reads, 782 rows decoded a probe"


def p1(w):
    r = subprocess.run(["go", "test", "-run", "^$", "-bench", "^Benchmark(Get|GetText|Cold|Reference)$", "-benchtime", f"{w.scale.seconds}s", "-timeout", "40m",
                        "./lookup", "-bench.rows", str(w.scale.lookup_rows)],
                       cwd=ROOT, capture_output=True, text=True, timeout=2400, env={**os.environ, "CGO_ENABLED": "0"})
    assert r.returncode == 0, r.stdout + r.stderr
    found = {}
    for line in r.stdout.splitlines():
        if m := re.match(r"Benchmark(\S+?)(-\d+)?\s", line):
            found[m.group(1)] = {unit: float(n) for n, unit in re.findall(r"([\d.e+-]+) (\S+)", line)}
    assert found.keys() == P1_CASES.keys(), r.stdout
    for case, (name, target, limit) in P1_CASES.items():
        value = found[case]
        table = "" if case.startswith("Reference") else f", {w.scale.lookup_rows:,} rows upserted in 101 commits, 10 % suppressed"
        per = value.get("lookups/s") or 1e9 / value["ns/op"]
        cost = (f"a probe: {value['reads/op']:.3g} reads, {value['bytes/op'] / 1024:.3g} KB, {value['decoded/op']:.0f} values decoded, {value['opens/op']:.3g} opens; "
                if "reads/op" in value else "")
        peer, theirs, ratio = ("itself", "", None) if case == "Cold" else (P1_PEER, "47k /s", per / 47_000)
        yield Row("P1", f"lookup in process, {name}{table}", peer, ms(1 / per) if case == "Cold" else rate(per, "/s"), theirs, ratio, f"≥ {target // 1000}k/s" if target else "",
                  per >= target if target else None, cost + limit)


P4_AGGREGATES = "count(*), sum(a)::bigint, min(b), max(b)"


def p4_changes(db, table, first, last):
    """The changes of a window, aggregated, by table_changes."""
    return timed(lambda: db.execute(f"SELECT _change_type, {P4_AGGREGATES} FROM table_changes('{table}', '{first}', '{last}') GROUP BY 1 ORDER BY 1").fetchall())


def p4_lake(lake, table, snapshot):
    """The same by DuckLake."""
    return timed(lambda: lake.execute(
        f"SELECT CASE change_type WHEN 'update_preimage' THEN 'UPDATE_BEFORE' ELSE 'UPDATE_AFTER' END, {P4_AGGREGATES} "
        f"FROM ducklake_table_changes('dl', 'main', '{table}', {snapshot}, {snapshot}) GROUP BY 1 ORDER BY 1").fetchall())


def p4_update(lake, table, where):
    lake.execute(f"UPDATE dl.{table} SET a = a + 1 WHERE {where}")
    return lake.execute("SELECT max(snapshot_id) FROM ducklake_snapshots('dl')").fetchone()[0]


def p4(w):
    n = w.scale.table_rows
    w.skade.db.execute("CREATE TABLE c (id bigint PRIMARY KEY, a bigint, b varchar(20))")
    fill = f"SELECT i AS id, i * 7 AS a, 'row ' || i AS b FROM {{}} t(i)"
    w.skade.db.execute("INSERT INTO c " + fill.format(f"generate_series(0, {n - 1})"))
    lake = ducklake(w.folder)
    lake.execute("CREATE TABLE dl.c (id BIGINT, a BIGINT, b VARCHAR)")
    lake.execute("INSERT INTO dl.c " + fill.format(f"range({n})"))
    lake.execute(f"CREATE TABLE before AS SELECT * FROM dl.c; COPY before TO '{w.folder}/before.parquet' (COMPRESSION zstd)")
    changed = n // 10
    for shape, first_key, step, target in (("clustered", n // 3, 1, 5.0), ("scattered", 3, 10, 1.5)):
        where = f"id BETWEEN {first_key} AND {first_key + changed - 1}" if step == 1 else f"id % {step} = {first_key}"
        first = w.skade.seq()
        w.skade.db.execute(f"UPDATE c SET a = a + 1 WHERE {where}")
        last = w.skade.seq()
        snapshot = p4_update(lake, "c", where)
        what = f"table_changes, {changed:,} {shape} updates in {n:,} rows, position deletes"
        limit = "rows are read and paired in Go, then handed to DuckDB as Arrow batches" + ("" if shape == "clustered" else "; every page of the old file holds a changed row")
        a, b = race(lambda: p4_changes(w.skade.db, "c", f"seq:{first}", f"seq:{last}"), lambda: p4_lake(lake, "c", snapshot), w.scale.rounds)
        yield Row("P4", what, "DuckLake table_changes", ms(a), ms(b), b / a, f"≥ {target}×", b / a >= target, limit)
        lake.execute(f"COPY dl.c TO '{w.folder}/{shape}.parquet' (COMPRESSION zstd)")
        if n <= 2_000_000 or shape == "clustered":  # the peer takes minutes, and its cost does not depend on the shape
            yield p4_except(w, what, shape, (first, last))
        yield p4_equality(w, lake, shape, (first_key, step, changed), where, target)


def p4_except(w, what, shape, window):
    before, after = (f"read_parquet('{w.folder}/{x}.parquet')" for x in ("before" if shape == "clustered" else "clustered", shape))
    theirs = (f"SELECT 'UPDATE_AFTER', {P4_AGGREGATES} FROM (FROM {after} EXCEPT ALL FROM {before}) UNION ALL "
              f"SELECT 'UPDATE_BEFORE', {P4_AGGREGATES} FROM (FROM {before} EXCEPT ALL FROM {after}) ORDER BY 1")
    a, b = race(lambda: p4_changes(w.skade.db, "c", f"seq:{window[0]}", f"seq:{window[1]}"), lambda: timed(lambda: w.duck.execute(theirs).fetchall()),
                1 if w.scale.table_rows > 2_000_000 else 2)
    return Row("P4", what, "DuckDB EXCEPT ALL, both ways", ms(a), ms(b), b / a, "≥ 10×", b / a >= 10, "as above; the peer hashes both states whole")


def p4_equality(w, lake, shape, keys, where, target):
    """The same history written by iceberg-go with equality deletes: the gateway finds the rows that died, with their before images."""
    n, name = w.scale.table_rows, f"e_{shape}"
    r = subprocess.run(["go", "run", "./test/bench/foreign", "-dir", w.foreign / name, "-rows", str(n),
                        *(x for flag, v in zip(("-from", "-step", "-changed"), keys) for x in (flag, str(v)))], cwd=ROOT, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    metadata, first, last = r.stdout.split()
    w.skade.db.execute("SELECT skade.register_table(%s, %s)", (name, metadata))
    lake.execute(f"CREATE TABLE dl.{name} AS FROM before")
    snapshot = p4_update(lake, name, where)
    cold, _ = p4_changes(w.skade.db, name, first, last)
    a, b = race(lambda: p4_changes(w.skade.db, name, first, last), lambda: p4_lake(lake, name, snapshot), w.scale.rounds)
    return Row("P4", f"table_changes, {keys[2]:,} {shape} updates in {n:,} rows, equality deletes", "DuckLake table_changes, the same updates", ms(a), ms(b),
               b / a, f"≥ {target}×", b / a >= target, f"the first time {ms(cold)}: the keys are found in the old files once, then kept as bitmaps")


FLIGHTS = [
    "SELECT origin, count(*), sum(delay), min(distance), max(distance) FROM flights GROUP BY origin ORDER BY origin",
    "SELECT date_trunc('month', date) AS m, count(*), sum(distance) FROM flights GROUP BY 1 ORDER BY 1",
    "SELECT count(DISTINCT origin), count(DISTINCT destination), min(date), max(date) FROM flights",
    "SELECT extract(hour FROM date)::int AS h, sum(CASE WHEN delay > 15 THEN 1 ELSE 0 END), count(*) FROM flights WHERE distance > 1000 GROUP BY 1 ORDER BY 1",
    "SELECT count(*), sum(delay) FROM flights WHERE origin = 'ATL' AND destination = 'ORD'",
]
TPCH = [1, 3, 5, 6, 12, 14, 19]


def copy_parquet(server, table, path):
    with server.db.cursor() as cur, open(path, "rb") as f, cur.copy(f"COPY {table} FROM STDIN (FORMAT parquet)") as copy:
        while chunk := f.read(1 << 18):
            copy.write(chunk)


def compare(w, plain, queries, check=None):
    """Ratios our time / DuckDB's time, query by query. check is the state that answers are compared with, when it is not the files'."""
    ratios, totals = [], [0.0, 0.0]
    for sql in queries:
        a, b = race(lambda: timed(lambda: w.skade.db.execute(sql).fetchall()), lambda: timed(lambda: plain.execute(sql).fetchall()),
                    w.scale.rounds, equal if check is None else lambda x, _: equal(x, check.execute(sql).fetchall()))
        ratios.append(a / b)
        totals[0] += a
        totals[1] += b
    return geomean(ratios), totals, max(ratios)


def p6(w):
    yield from flights(w)
    yield from tpch(w)


def row6(what, result, most, limit):
    ratio, (a, b), worst = result
    return Row("P6", what, "DuckDB read_parquet, same files", ms(a), ms(b), 1 / ratio, f"time ≤ {most}×", ratio <= most,
               f"time {ratio:.2f}× (worst query {worst:.2f}×): {limit}")


def flights(w):
    source = w.folder / "flights.parquet"
    w.duck.execute(f"COPY (FROM read_parquet('{w.flights}') LIMIT {w.scale.flights}) TO '{source}'")
    w.skade.db.execute("CREATE TABLE flights (date timestamp, delay bigint, distance bigint, origin varchar(3), destination varchar(3))")
    t, _ = timed(lambda: copy_parquet(w.skade, "flights", source))
    plain, check = duck(), duck()
    plain.execute(f"CREATE VIEW flights AS FROM read_parquet({w.skade.files('flights')})")
    rows = plain.execute("SELECT count(*) FROM flights").fetchone()[0]
    limit = "the statement's round trip, analysis and plan on top of DuckDB's own scan; sums of bigint are numeric, as PostgreSQL's are (not profiled)"
    yield row6(f"flights, {rows:,} rows, 5 aggregates", compare(w, plain, FLIGHTS), 1.10, limit + f"; loading them took {ms(t)}")
    w.postgres.db.execute("CREATE TABLE flights (date timestamp, delay bigint, distance bigint, origin varchar(3), destination varchar(3))")
    with w.postgres.db.cursor() as cur, cur.copy("COPY flights FROM STDIN (FORMAT csv)") as copy:
        csv = w.folder / "flights.csv"
        plain.execute(f"COPY flights TO '{csv}' (HEADER false)")
        with open(csv, "rb") as f:
            while chunk := f.read(1 << 18):
                copy.write(chunk)
    w.postgres.db.execute("VACUUM ANALYZE flights")
    heap = [race(lambda: timed(lambda: w.skade.db.execute(sql).fetchall()), lambda: timed(lambda: w.postgres.db.execute(sql).fetchall()), 2) for sql in FLIGHTS[:3:2] + FLIGHTS[4:]]
    ratio = geomean([b / a for a, b in heap])
    yield Row("P6", f"flights, {rows:,} rows, 3 aggregates", "PostgreSQL heap", ms(sum(a for a, _ in heap)), ms(sum(b for _, b in heap)), ratio, "≥ 10×", ratio >= 10, "PostgreSQL with its default parallel settings; against the gateway: round trip and plan (not profiled)")
    check.execute(f"CREATE TABLE flights AS FROM read_parquet({w.skade.files('flights')})")
    for share, where, most in ((1, "(distance + delay) % 100 = 7", 1.35), (10, "(distance + delay) % 10 = 7", 2.0)):
        w.skade.db.execute(f"DELETE FROM flights WHERE {where}")
        check.execute(f"DELETE FROM flights WHERE {where}")
        gone = 100 - 100 * check.execute("SELECT count(*) FROM flights").fetchone()[0] / rows
        yield row6(f"flights, {gone:.1f} % of rows suppressed", compare(w, plain, FLIGHTS, check), most,
                   "a C scalar filter tests each row's bit; DuckDB's peer reads the same files without suppression, so it counts the dead rows too (not profiled)")


def ddl(d, table):
    kinds = {"VARCHAR": "text", "INTEGER": "integer", "BIGINT": "bigint", "DATE": "date"}
    cols = d.execute(f"DESCRIBE {table}").fetchall()
    return ", ".join(f"{c[0]} {kinds.get(c[1], c[1].replace('DECIMAL', 'numeric'))}" for c in cols)


def tpch(w):
    d = duck()
    d.execute(f"CALL dbgen(sf = {w.scale.tpch})")
    plain = duck()
    for (table,) in d.execute("SHOW TABLES").fetchall():
        path = w.folder / f"{table}.parquet"
        d.execute(f"COPY {table} TO '{path}'")
        w.skade.db.execute(f"CREATE TABLE {table} ({ddl(d, table)})")
        copy_parquet(w.skade, table, path)
        plain.execute(f"CREATE VIEW {table} AS FROM read_parquet({w.skade.files(table)})")
    queries = [d.execute(f"SELECT query FROM tpch_queries() WHERE query_nr = {q}").fetchone()[0] for q in TPCH]
    d.close()
    yield row6(f"TPC-H shape, scale factor {w.scale.tpch}, queries {', '.join(map(str, TPCH))}", compare(w, plain, queries), 1.10,
               "division and avg of numeric keep PostgreSQL's scales; the statement's round trip, analysis and plan weigh more the smaller the scale (not profiled)")


def p10(w):
    path = rows_csv(w)
    n = w.scale.rows
    for server in (w.skade, w.postgres):
        server.db.execute(f"CREATE TABLE loaded ({COLUMNS})")

    def load(server):
        def run():
            server.db.execute("TRUNCATE loaded")
            t, count = copy_in(server, "loaded", path)
            assert count == n, count
            return t, server.db.execute("SELECT count(*), sum(n), min(ts), max(name) FROM loaded").fetchall()
        return run

    def duckdb_parquet():
        d = duckdb.connect()
        out = w.folder / "sorted.parquet"
        t, _ = timed(lambda: d.execute(
            f"COPY (SELECT * FROM read_csv('{path}', header = false, columns = {{'id': 'BIGINT', 'n': 'INTEGER', 'x': 'DOUBLE', 'd': 'DATE', 'ts': 'TIMESTAMP', 'name': 'VARCHAR'}}) "
            f"ORDER BY id) TO '{out}' (COMPRESSION zstd)"))
        return t, d.execute(f"SELECT count(*), sum(n), min(ts), max(name) FROM '{out}'").fetchall()

    what = f"COPY FROM csv, {n:,} rows × 6 columns, with a key"
    a, b = race(load(w.skade), load(w.postgres), w.scale.rounds)
    yield Row("P10", what, "PostgreSQL COPY, same client", rate(n / a, "rows/s"), rate(n / b, "rows/s"), b / a, "≥ 2×", b / a >= 2,
              "csv is parsed in Go on one core, then sorted and written as zstd Parquet with pages, bloom filter and key index, and synced")
    a, b = race(load(w.skade), duckdb_parquet, w.scale.rounds)
    yield Row("P10", what, "DuckDB csv → Parquet, ORDER BY key", rate(n / a, "rows/s"), rate(n / b, "rows/s"), b / a, "≥ 0.7×", b / a >= 0.7,
              "as above; the peer reads the file itself, on both cores, builds no index and does not check the key")
