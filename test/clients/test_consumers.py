"""The consumers of examples/, killed with -9 and started again at random while the demo runs: in the end each copy is the table."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import ROOT, Gateway

EXAMPLES = ROOT / "examples"


def command(kind, url, tmp_path):
    """The program's command line and its copy."""
    match kind:
        case "go":
            binary = tmp_path / "consumer-go"
            subprocess.run(["go", "build", "-o", binary, "./examples/consumer-go"], cwd=ROOT, check=True, env={**os.environ, "CGO_ENABLED": "0"})
            return [binary, url, tmp_path / "orders.sqlite"]
        case "python":
            return [sys.executable, EXAMPLES / "consumer-python" / "consumer.py", url, tmp_path / "orders.sqlite"]
        case "javascript":
            return ["node", EXAMPLES / "consumer-javascript" / "consumer.mjs", url, tmp_path / "orders.json"]


def copy_of(file):
    """The copy's position and rows: {id: (status, total)}."""
    if not file.exists():
        return -1, {}
    if file.suffix == ".json":
        store = json.loads(file.read_text())
        return int(store["position"]), {int(k): tuple(v) for k, v in store["orders"].items()}
    with sqlite3.connect(file, timeout=30) as db:  # not read-only: the journal of a killed writer may have to be rolled back
        try:
            position = db.execute("SELECT seq FROM position").fetchone()
            return (-1 if position is None else position[0]), {i: (s, t) for i, s, t in db.execute("SELECT id, status, total FROM orders")}
        except sqlite3.OperationalError as e:
            assert "no such table" in str(e), e
            return -1, {}


@pytest.mark.parametrize("kind", ["go", "python", "javascript"])
def test_killed_consumer(tmp_path, kind):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    rounds = 12 if os.environ.get("SKADE_JUDGES") == "full" else 6
    gateway = Gateway(tmp_path / "data").start()
    try:
        with gateway.connect() as c:
            c.execute("CREATE TABLE orders (id bigint PRIMARY KEY, status text NOT NULL, total numeric(12,2))")
            c.execute("INSERT INTO orders SELECT i, 'new', i FROM generate_series(1, 200) i")
            argv = command(kind, gateway.url, tmp_path)
            errors = open(tmp_path / "errors", "wb")
            for _ in range(rounds):
                consumer = subprocess.Popen(argv, stderr=errors)
                until = time.monotonic() + rng.uniform(0.05, 2)
                while time.monotonic() < until:  # inserts, updates, deletes: some in one transaction
                    i = rng.randrange(1, 400)
                    with c.transaction():
                        c.execute("INSERT INTO orders VALUES (%s, 'again', 1.25) ON CONFLICT (id) DO UPDATE SET status = orders.status || '+', total = orders.total + 1", (i,))
                        if rng.random() < 0.3:
                            c.execute("DELETE FROM orders WHERE id = %s", (rng.randrange(1, 400),))
                consumer.kill()
                consumer.wait()
            newest = c.execute("SELECT max(commit_seq) FROM skade.commits WHERE table_name = 'public.orders'").fetchone()[0]
            want = {i: (s, t) for i, s, t in c.execute("SELECT id, status, total::text FROM orders")}
            consumer = subprocess.Popen(argv, stderr=errors)
            deadline = time.monotonic() + 60
            while copy_of(argv[-1])[0] < newest:
                assert consumer.poll() is None, (tmp_path / "errors").read_text()
                assert time.monotonic() < deadline, f"the copy is at {copy_of(argv[-1])[0]}, the table at {newest}"
                time.sleep(0.05)
            assert copy_of(argv[-1])[1] == want
            while c.execute("SELECT position FROM skade.changefeeds").fetchone()[0] < newest:
                assert time.monotonic() < deadline, "the last window was not acknowledged"
                time.sleep(0.05)
            consumer.kill()
            consumer.wait()
        assert "Traceback" not in (tmp_path / "errors").read_text()
    finally:
        gateway.stop()
    assert gateway.check()[0] == 0
