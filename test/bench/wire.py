"""P2, P7, P8: what a client sees of small statements and of large results."""

import random
import re
import subprocess

from measure import Row, equal, ms, race, rate, timed
from peers import PGBIN, ROOT


def pgbench(url, scripts, clients, seconds=0, mode="prepared", transactions=0):
    """Transactions per second of a pgbench script, or of several taken by chance: for some seconds, or a number of transactions."""
    files = [a for f in (scripts if isinstance(scripts, list) else [scripts]) for a in ("-f", f)]
    length = ["-t", str(transactions)] if transactions else ["-T", str(seconds)]
    r = subprocess.run([PGBIN / "pgbench", "-n", "-M", mode, "-c", str(clients), "-j", "1", *length, *files, url],
                       capture_output=True, text=True, timeout=seconds * 10 + transactions + 60)
    found = re.search(r"tps = ([\d.]+) \(without initial", r.stdout)
    assert r.returncode == 0 and found and "number of failed transactions: 0" in r.stdout, r.stdout + r.stderr
    return float(found.group(1))


def script(w, name, text):
    path = w.folder / f"{name}.sql"
    path.write_text(text)
    path.chmod(0o644)
    return path


def rows_csv(w):
    """The rows of P2, P7 and P10 as a csv file: key int8, int4, float8, date, timestamp, text."""
    path = w.folder / "rows.csv"
    if not path.exists():
        w.duck.execute(f"""COPY (
            SELECT i AS id, (i * 7919 % 100003)::INTEGER AS n, i / 7 AS x, DATE '2020-01-01' + (i % 1500)::INTEGER AS d,
                   TIMESTAMP '2020-01-01' + to_seconds(i) AS ts, 'name-of-' || lpad(i::VARCHAR, 10, '0') AS name
            FROM range({w.scale.rows}) t(i)) TO '{path}' (HEADER false)""")
    return path


COLUMNS = "id bigint PRIMARY KEY, n integer, x double precision, d date, ts timestamp, name varchar(20)"


def copy_in(server, table, path):
    def run():
        with server.db.cursor() as cur, open(path, "rb") as f:
            with cur.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
                while chunk := f.read(1 << 18):
                    copy.write(chunk)
            return cur.rowcount
    return timed(run)


def wide_rows(w):
    """Table r in both servers."""
    if not w.has("r"):
        for server in (w.skade, w.postgres):
            server.db.execute(f"CREATE TABLE r ({COLUMNS})")
            copy_in(server, "r", rows_csv(w))
        w.postgres.db.execute("VACUUM ANALYZE r")


def keyed_rows(w):
    """Table k in both servers: the rows of r, every tenth updated, so that a tenth of those in skade-pg's files is suppressed."""
    for server in (w.skade, w.postgres):
        server.db.execute(f"CREATE TABLE k ({COLUMNS})")
        copy_in(server, "k", rows_csv(w))
        server.db.execute("UPDATE k SET n = n + 1 WHERE id % 10 = 3")
    w.postgres.db.execute("VACUUM ANALYZE k")
    dead = suppressed(w.skade, "k")
    assert dead == w.scale.rows // 10, f"{dead} rows are suppressed"


def suppressed(server, table):
    """How many rows of a table's data files are suppressed, by the plan of a scan."""
    plan = server.db.execute(f"EXPLAIN (FORMAT JSON) SELECT count(*) FROM {table}").fetchone()[0]
    return plan[0]["Plan"]["Plans"][0]["Suppressed Rows"]


def p2(w):
    keyed_rows(w)
    test = script(w, "lookup", f"\\set k random(0, {w.scale.rows - 1})\nSELECT n, ts, name FROM k WHERE id = :k;\n")
    rng = random.Random(2)

    def side(server, clients):
        def run():
            keys = [rng.randrange(w.scale.rows) for _ in range(50)]
            return 1 / pgbench(server.url, test, clients, w.scale.seconds), keys
        return run

    def same(ours, theirs):
        for k in ours + theirs:
            sql = "SELECT n, ts, name FROM k WHERE id = %s"
            equal(w.skade.db.execute(sql, [k]).fetchall(), w.postgres.db.execute(sql, [k]).fetchall())

    for clients in (1, 16):
        a, b = race(side(w.skade, clients), side(w.postgres, clients), w.scale.rounds, same)
        yield Row("P2", f"prepared lookup of a random key, {w.scale.rows:,} rows, 10 % more suppressed, {clients} connection(s)", "PostgreSQL primary key",
                  rate(1 / a, "tx/s"), rate(1 / b, "tx/s"), b / a, "≥ 1.0×", b / a >= 1,
                  "reading, dispatching and answering five messages a transaction, and pgbench on the same cores; a page is inflated when its first row is asked for")


def p7(w):
    wide_rows(w)
    drain = w.folder / "drain"
    subprocess.run(["go", "build", "-o", drain, "./test/bench/drain"], cwd=ROOT, check=True)

    def side(server, *flags):
        def run():
            r = subprocess.run([drain, "-url", server.url, "-sql", "SELECT id, n, x, d, ts, name FROM r", *flags],
                               capture_output=True, text=True, timeout=300)
            assert r.returncode == 0, r.stderr
            rows, size, seconds, total = r.stdout.split()
            return float(seconds), (rows, size, total)
        return run

    for form, flags, target in (("text", [], 1.3), ("binary", ["-binary"], 3.0)):
        a, b = race(side(w.skade, *flags), side(w.postgres, *flags), w.scale.rounds, same_text)
        yield Row("P7", f"{w.scale.rows:,} rows × 6 columns to a client, {form}", "PostgreSQL, same client",
                  rate(w.scale.rows / a, "rows/s"), rate(w.scale.rows / b, "rows/s"), b / a, f"≥ {target}×", b / a >= target,
                  "encoding on one core, while scan and client want the other (not profiled)" if form == "text"
                  else "the socket and the client share the cores with the server (not profiled)")


def same_text(ours, theirs):
    assert ours == theirs, f"rows, bytes, checksum differ: {ours} {theirs}"


def p8(w):
    wide_rows(w)
    for name, sql, mode, limit in (
            ("SELECT 1, simple protocol", "SELECT 1;\n", "simple", "parse, analysis and DuckDB's own prepare of every statement: nothing is kept between simple queries"),
            ("SELECT 1, prepared", "SELECT 1;\n", "prepared", "DuckDB's start of a streaming execution and its task hand-over"),
            ("SELECT $1::int + 1, prepared", "\\set k random(1, 1000)\nSELECT :k::int + 1;\n", "prepared", "DuckDB binds the plan again when parameters are set, then runs it as above")):
        test = script(w, "small", sql)
        a, b = race(lambda: (1 / pgbench(w.skade.url, test, 1, w.scale.seconds, mode), None),
                    lambda: (1 / pgbench(w.postgres.url, test, 1, w.scale.seconds, mode), None), w.scale.rounds)
        equal(w.skade.db.execute("SELECT 41::int + 1").fetchall(), w.postgres.db.execute("SELECT 41::int + 1").fetchall())
        yield Row("P8", name, "PostgreSQL", ms(a), ms(b), b / a, "≤ 0.2 ms", a <= 0.0002, limit)

    repeat = 5

    def describe(server):
        def run():
            def psql(text):
                return subprocess.run(["psql", "-X", "-q", server.url], input=text, capture_output=True, text=True, timeout=60).stdout
            base, _ = timed(lambda: psql("\\echo\n"))
            t, out = timed(lambda: psql("\\d r\n" * repeat))
            return max(t - base, 1e-9) / repeat, out
        return run

    a, b = race(describe(w.skade), describe(w.postgres), w.scale.rounds)
    yield Row("P8", "psql \\d t, all its statements", "PostgreSQL", ms(a), ms(b), b / a, "≤ 60 ms", a <= 0.06,
              "DuckDB plans each of psql's catalog queries afresh (optimizer and macros), most of them return nothing (not profiled)")
    join = ("SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'v') AND n.nspname = 'public' ORDER BY 1, 2")

    def catalog(server):
        return lambda: timed(lambda: server.db.execute(join).fetchall())

    a, b = race(catalog(w.skade), catalog(w.postgres), w.scale.rounds * 5, lambda x, y: equal([r for r in x if r[1] == "r"], [r for r in y if r[1] == "r"]))
    yield Row("P8", "pg_class ⋈ pg_namespace", "PostgreSQL", ms(a), ms(b), b / a, "≤ 5 ms", a <= 0.005,
              "DuckDB's planning of the join and the hand-over of pg_class as Arrow batches (not profiled)")
