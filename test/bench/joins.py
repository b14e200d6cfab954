"""P3: many keys at once, against DuckDB's hash join over the same Parquet files."""

import random

from measure import Row, ms, race, timed
from wire import suppressed

KEYS = 100_000


def upserted(w):
    """Table u: appended in 100 commits, then every tenth row updated. In DuckDB, dead holds the places of the rows that are suppressed."""
    if w.has("u"):
        return
    n, db = w.scale.lookup_rows, w.skade.db
    db.execute("CREATE TABLE u (id bigint PRIMARY KEY, n bigint, name varchar(20))")
    for i in range(100):
        db.execute(f"INSERT INTO u SELECT i, i * 7, 'name-of-' || lpad(i::text, 10, '0') FROM generate_series({i * n // 100}, {(i + 1) * n // 100 - 1}) i")
    db.execute("UPDATE u SET n = n + 1 WHERE id % 10 = 3")
    dead = suppressed(w.skade, "u")
    assert dead == n // 10, f"{dead} rows are suppressed"
    deletes = sorted(str(p) for p in w.skade.data.glob("warehouse/public/u-*/data/*-deletes.parquet"))
    w.duck.execute(f"CREATE TABLE dead AS SELECT regexp_replace(file_path, '^file:(//)?', '') AS file, pos FROM read_parquet({deletes})")
    assert w.duck.execute("SELECT count(*) FROM dead").fetchone()[0] == dead


def live(w):
    """u's live rows in DuckDB."""
    return (f"(SELECT id, n, name FROM read_parquet({w.skade.files('u')}, filename = true, file_row_number = true) t "
            "ANTI JOIN dead ON dead.file = t.filename AND dead.pos = t.file_row_number)")


ANSWER = "count(*), sum(u.n)::bigint, min(u.name), max(u.name)"


def p3(w):
    upserted(w)
    n, rng = w.scale.lookup_rows, random.Random(3)
    keys = {"uniformly random": [rng.randrange(n + n // 10) for _ in range(KEYS)], "consecutive": list(range(n // 2, n // 2 + KEYS))}
    for shape, values in keys.items():
        rng.shuffle(values)
        w.duck.execute("CREATE OR REPLACE TABLE keys (id BIGINT, place BIGINT)")
        w.duck.execute("INSERT INTO keys SELECT unnest(?), unnest(range(?))", [values, len(values)])
        ours = f"SELECT {ANSWER}, sum(_key_ordinal)::bigint FROM lookup_many('u', %s) u"
        theirs = f"SELECT {ANSWER}, sum(place)::bigint FROM keys JOIN {live(w)} u USING (id)"
        a, b = race(lambda: timed(lambda: w.skade.db.execute(ours, [values]).fetchall()), lambda: timed(lambda: w.duck.execute(theirs).fetchall()), w.scale.rounds)
        yield Row("P3", f"lookup_many of {KEYS:,} {shape} keys, {n:,} rows upserted in 101 commits, 10 % suppressed", "DuckDB hash join, same files", ms(a), ms(b),
                  b / a, "≥ 1.0×", b / a >= 1, "half is the probes and reads of pages in Go, a seventh its collector, a tenth the array's text, which the peer is spared: its keys are in a table")
        yield delta(w, shape, values)


def delta(w, shape, refs):
    """100,000 new rows whose references join u, pinned on both sides."""
    n, db, table = w.scale.lookup_rows, w.skade.db, "c_" + shape.split()[0]
    db.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, ref bigint)")
    first = w.skade.seq()
    with db.cursor() as cur, cur.copy(f"COPY {table} FROM STDIN") as copy:
        for i, r in enumerate(refs):
            copy.write_row((i, r))
    last = w.skade.seq()
    sign = "CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END AS sign"
    ours = f"""WITH da AS (SELECT *, {sign} FROM table_changes('{table}', 'seq:{first}', 'seq:{last}')),
                    db AS (SELECT *, {sign} FROM table_changes('u', 'seq:{first}', 'seq:{last}'))
               SELECT {ANSWER}, sum(sign)::bigint FROM (
                 SELECT u.n, u.name, da.sign FROM da JOIN table_at('u', 'seq:{first}') u ON u.id = da.ref
                 UNION ALL SELECT db.n, db.name, db.sign FROM table_at('{table}', 'seq:{last}') a JOIN db ON db.id = a.ref) u"""
    theirs = f"SELECT {ANSWER}, count(*) FROM read_parquet({w.skade.files(table)}) a JOIN {live(w)} u ON u.id = a.ref"
    a, b = race(lambda: timed(lambda: db.execute(ours).fetchall()), lambda: timed(lambda: w.duck.execute(theirs).fetchall()), w.scale.rounds)
    how = next(x[0] for x in db.execute("EXPLAIN " + ours).fetchall() if "Join:" in x[0])
    return Row("P3", f"delta join of {KEYS:,} changed rows with {shape} references, {n:,} rows on the other side", "DuckDB hash join, same files", ms(a), ms(b),
               b / a, "≥ 1.0×", b / a >= 1, how.strip().removeprefix("Join: ") + "; the changes are computed first, the peer is given their file")
