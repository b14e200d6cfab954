"""P5: folding a window's changes to its net effect."""

import os
import statistics
import subprocess

import duckdb

from measure import Row, race, rate, timed
from peers import ROOT

FOLD = """
WITH left_over AS (
  SELECT id, v, sum(CASE WHEN kind IN ('DELETE', 'UPDATE_BEFORE') THEN -1 ELSE 1 END) AS n FROM changes GROUP BY id, v HAVING n <> 0),
net AS (SELECT id, max(v) FILTER (n < 0) AS old, max(v) FILTER (n > 0) AS new FROM left_over GROUP BY id)
SELECT count(*), count(old), count(new), sum(old)::BIGINT, sum(new)::BIGINT, min(id), max(id) FROM net"""


def p5(w):
    n, keys = w.scale.collapse_rows, w.scale.collapse_rows // 8
    binary = w.folder / "fold"
    subprocess.run(["go", "build", "-o", binary, "./test/bench/fold"], cwd=ROOT, check=True, env={**os.environ, "CGO_ENABLED": "0"}, timeout=1200)
    for text, target in ((False, 20e6), (True, 8e6)):
        # The rows of test/bench/fold: every key is updated in four commits, each in an order of its own.
        key = f"((u % {keys}) * 7919 + (u // {keys}) * 104729) % {keys} * 1000003"
        if text:
            key = f"printf('%012d', {key})"
        peer = duckdb.connect()
        peer.execute(f"CREATE TABLE changes AS SELECT {key} AS id, CASE WHEN i % 2 = 0 THEN 'UPDATE_BEFORE' ELSE 'UPDATE_AFTER' END AS kind, "
                     f"(u // {keys}) + i % 2 AS v FROM (SELECT i, i // 2 AS u FROM range({n}) r(i))")
        with Folder(binary, n, text) as ours:
            kind = "text" if text else "int8"
            a, b = race(lambda: ours.fold("parallel"), lambda: timed(lambda: [str(x) for x in peer.execute(FOLD).fetchone()]), w.scale.rounds)
            yield Row("P5", f"collapse of {n:,} change rows, {kind} key, four updates a key", "DuckDB, the same fold as SQL over a table in memory",
                      rate(n / a, "rows/s"), rate(n / b, "rows/s"), b / a, f"≥ {target / 1e6:.0f}M rows/s", n / a >= target,
                      f"memory: rows are scattered by key hash, then each part is folded in a core's cache; {n / statistics.median(ours.cpu) / 1e6:.3g}M rows a second of one core's time")
            a, b = race(lambda: ours.fold("parallel"), lambda: ours.fold("one"), w.scale.rounds)
            yield Row("P5", f"the same, {kind} key", "itself with one worker", rate(n / a, "rows/s"), rate(n / b, "rows/s"), b / a, "≥ 1.3×", b / a >= 1.3, "as above")
            a, b = race(lambda: ours.fold("parallel"), lambda: ours.fold("serial"), 1)
            yield Row("P5", f"the same, {kind} key", "a hash map of keys, one core, as a program would", rate(n / a, "rows/s"), rate(n / b, "rows/s"), b / a, "", None, "as above; the map is aggregated, not made into rows")
        peer.close()


class Folder:
    """test/bench/fold, which folds the rows once for each line it reads."""

    def __init__(self, binary, rows, text):
        self.cpu = []
        self.process = subprocess.Popen([binary, f"-rows={rows}", f"-text={str(text).lower()}"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline().strip() == "ready"

    def fold(self, how):
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()
        ns, cpu, *answer = self.process.stdout.readline().split()
        if how == "parallel":
            self.cpu.append(int(cpu) / 1e9)
        return int(ns) / 1e9, answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
