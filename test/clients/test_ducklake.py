"""table_changes against DuckLake's, where their semantics agree: the same random statements, one a commit, on both sides.

Where they do not agree the test follows docs: DuckLake shows an update of a row with the same values as an update, here nothing changed; and a
key that is deleted and inserted in one transaction is there a delete and an insert, here one update. The statements avoid both.
"""

import pathlib
import random

import duckdb
import duckdb_extension_ducklake
import pytest

from conftest import Gateway

KINDS = {"insert": "INSERT", "delete": "DELETE", "update_preimage": "UPDATE_BEFORE", "update_postimage": "UPDATE_AFTER"}


def lake(folder):
    d = duckdb.connect()
    d.execute(f"LOAD '{next(pathlib.Path(duckdb_extension_ducklake.__file__).parent.rglob('*.duckdb_extension'))}'")
    folder.mkdir()
    d.execute(f"ATTACH 'ducklake:{folder}/meta.ducklake' AS dl (DATA_PATH '{folder}/data')")
    d.execute("USE dl")
    return d


def statement(rng, live, n):
    """A random statement that both sides take, with its effect on the ids that are live."""
    kind = rng.choice(["insert", "insert", "update", "delete", "range", "select"])
    if not live or kind == "insert":
        ids = [i for i in rng.sample(range(200), rng.randrange(1, 20)) if i not in live]
        live.update(ids)
        return "INSERT INTO t VALUES " + ", ".join(f"({i}, {rng.choice(['NULL', repr('v' + str(i)), repr('')])}, {n}.25)" for i in ids) if ids else None
    some = rng.sample(sorted(live), min(len(live), rng.randrange(1, 6)))
    ids = ", ".join(map(str, some))
    match kind:
        case "update":
            return f"UPDATE t SET n = {n}.5, v = coalesce(v, '') || 'u' WHERE id IN ({ids})"
        case "delete":
            live.difference_update(some)
            return f"DELETE FROM t WHERE id IN ({ids})"
        case "range":
            lo = rng.randrange(200)
            gone = {i for i in live if lo <= i < lo + 20}
            live.difference_update(gone)
            return f"DELETE FROM t WHERE id >= {lo} AND id < {lo + 20}" if gone else None
        case "select":
            ids = [i for i in range(1000 * n, 1000 * n + 3)]
            live.update(ids)
            return f"INSERT INTO t SELECT id + {1000 * n}, v, n FROM (VALUES (0, 'x', 1.5), (1, NULL, 2.5), (2, '', NULL)) s(id, v, n)"


@pytest.mark.parametrize("version", [2, 3])
def test_random_statements(tmp_path, version):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    gateway = Gateway(tmp_path / "data").start()
    try:
        ours, theirs = gateway.connect(), lake(tmp_path / "lake")
        ours.execute(f"CREATE TABLE t (id bigint PRIMARY KEY, v text, n numeric(12,2)) WITH (format_version = {version})")
        theirs.execute("CREATE TABLE t (id BIGINT, v VARCHAR, n DECIMAL(12,2))")
        live, steps = set(), []
        for n in range(1, 41):
            sql = statement(rng, live, n)
            if sql is None:
                continue
            ours.execute(sql)
            theirs.execute(sql)
            steps.append((ours.execute("SELECT current_commit_seq()").fetchone()[0],
                          theirs.execute("SELECT max(snapshot_id) FROM ducklake_snapshots('dl')").fetchone()[0], sql))
            if n % 13 == 0:
                ours.execute("VACUUM FULL t")
        assert sorted(ours.execute("SELECT id, v, n FROM t").fetchall(), key=str) == sorted(theirs.execute("SELECT id, v, n FROM t").fetchall(), key=str)
        windows = [(i, i + 1) for i in range(len(steps) - 1)]
        windows += [tuple(sorted(rng.sample(range(len(steps)), 2))) for _ in range(10)]
        for i, j in windows:
            mine = ours.execute("SELECT _commit_seq, _change_type, id, v, n FROM table_changes('t', %s, %s)", (f"seq:{steps[i][0]}", f"seq:{steps[j][0]}")).fetchall()
            seqs = {snap: seq for seq, snap, _ in steps}
            other = theirs.execute(f"SELECT snapshot_id, change_type, id, v, n FROM ducklake_table_changes('dl', 'main', 't', {steps[i][1] + 1}, {steps[j][1]})").fetchall()
            other = [(seqs[s], KINDS[c], *rest) for s, c, *rest in other]
            assert sorted(mine, key=str) == sorted(other, key=str), [s for _, _, s in steps[i + 1:j + 1]]
    finally:
        gateway.stop()
