"""P9, P11 and P14: single-row commits, from one writer and from 64, how they grow, and who hears of them."""

import contextlib
import re
import subprocess
import urllib.request

from measure import Row, ms, race, rate
from peers import ROOT
from wire import pgbench, script

TABLES = 64


def counters(server):
    """The server's counters of commits and syncs."""
    text = urllib.request.urlopen(server.http + "/metrics", timeout=10).read().decode()
    return {k: float(v) for k, v in re.findall(r"^(skade_\w+) ([\d.e+]+)$", text, re.M)}


def setup(w):
    if not w.has("w0"):
        for server in (w.skade, w.postgres):
            for i in range(TABLES):
                server.db.execute(f"CREATE TABLE w{i} (id bigint PRIMARY KEY, v integer, t text)")
    return [script(w, f"upsert{i}", f"\\set k random(1, 10000)\n"
                   f"INSERT INTO w{i} VALUES (:k, 1, 'text') ON CONFLICT (id) DO UPDATE SET v = w{i}.v + 1;\n") for i in range(TABLES)]


def p9(w):
    scripts = setup(w)

    def side(server, clients, files):
        def run():
            return 1 / pgbench(server.url, files, clients, max(3, w.scale.seconds)), None
        return run

    for clients, files, what, target in ((1, scripts[:1], "1 writer, 1 table", None), (64, scripts, "64 writers, 64 tables", 0.5), (64, scripts[:1], "64 writers, 1 table", 0.5)):
        before = counters(w.skade)
        a, b = race(side(w.skade, clients, files), side(w.postgres, clients, files), w.scale.rounds, lambda ours, theirs: None)
        after = counters(w.skade)
        commits = after["skade_commit_seq"] - before["skade_commit_seq"]
        syncs = (after["skade_storage_fsyncs_total"] - before["skade_storage_fsyncs_total"]) / commits
        yield Row("P9", f"prepared upsert of one row, a commit each, {what}", "PostgreSQL, synchronous_commit on", rate(1 / a, "tx/s"), rate(1 / b, "tx/s"), b / a,
                  f"≥ {target}×" if target else "", target is None or b / a >= target,
                  f"{syncs:.2f} syncs of the file store a commit; each commit makes three files (data, manifest, manifest list), then Parquet's writer and DuckDB's evaluation of SET")


    yield notified(w)


def listen(w):
    """The program that stands for listening clients."""
    program = w.folder / "listen"
    if not program.exists():
        subprocess.run(["go", "build", "-o", program, "./test/bench/listen"], cwd=ROOT, check=True)
    return program


def notified(w):
    """From a commit's answer at the writer to its notification at another session."""
    program, upsert = listen(w), "INSERT INTO w0 VALUES (1, 1, 'text') ON CONFLICT (id) DO UPDATE SET v = w0.v + 1"

    def side(server, channel, sql):
        def run():
            r = subprocess.run([program, "-url", server.url, "-channel", channel, "-commits", "200", "-sql", sql], capture_output=True, text=True, timeout=300)
            assert r.returncode == 0, r.stderr
            return float(r.stdout.split()[0]), None
        return run

    a, b = race(side(w.skade, "skade_commits", upsert), side(w.postgres, "heard", upsert + "; NOTIFY heard, 'x'"), w.scale.rounds, lambda ours, theirs: None)
    return Row("P9", "commit → NOTIFY, from the commit's answer to the other session's message, p50 (0: it was there first)", "PostgreSQL, NOTIFY in the transaction",
               ms(a), ms(b), None, "< 1 ms", a < 0.001, "a goroutine is woken and writes to its socket")


@contextlib.contextmanager
def listeners(w, sessions, stuck):
    p = subprocess.Popen([listen(w), "-url", w.skade.url, "-sessions", str(sessions), "-stuck", str(stuck)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        yield
    finally:
        p.stdin.close()
        told = p.stdout.readline()
        p.wait(60)
    assert int(told) > 0, "nobody heard anything"


def p14(w):
    """Commits per second with a thousand sessions that LISTEN, one of which never reads, against none."""
    scripts = setup(w)
    for clients, files, what in ((1, scripts[:1], "1 writer"), (64, scripts, "64 writers, 64 tables")):
        def alone():
            return 1 / pgbench(w.skade.url, files, clients, max(3, w.scale.seconds)), None

        def heard():
            with listeners(w, 1000, 1):
                return alone()

        a, b = race(heard, alone, 2 * w.scale.rounds + 1)
        yield Row("P14", f"upserts of one row, {what}, while 1,000 sessions LISTEN, one of them stuck", "itself without listeners", rate(1 / a, "tx/s"), rate(1 / b, "tx/s"), b / a,
                  "≥ 0.95×", b / a >= 0.95, "waking a session and its client (a share of 100 a second and 2 a commit take turns); each gets at once what came since its last turn (not profiled)")


def p11(w):
    """One writer's commits per second into a table that has 100 commits, against 1,000."""
    db = w.skade.db
    db.execute("CREATE TABLE grow (id bigint PRIMARY KEY, v integer, t text)")
    upsert = [script(w, "grow", "\\set k random(1, 10000)\nINSERT INTO grow VALUES (:k, 1, 'text') ON CONFLICT (id) DO UPDATE SET v = grow.v + 1;\n")]

    def reach(n):
        while (have := db.execute("SELECT count(*) FROM skade.commits WHERE table_name = 'public.grow'").fetchone()[0]) < n:
            pgbench(w.skade.url, upsert, 1, 1, transactions=n - have)

    times = []
    for n in (100, 1000):
        reach(n)
        times.append(sorted(1 / pgbench(w.skade.url, upsert, 1, 1, transactions=50) for _ in range(3))[1])
    yield Row("P11", "a commit after 1,000 commits to its table", "itself after 100", rate(1 / times[1], "tx/s"), rate(1 / times[0], "tx/s"), times[0] / times[1],
              "time ≤ 1.5×", times[1] <= 1.5 * times[0], "the search for a key, the manifests that are merged and the list of them grow with the logarithm of the files")
