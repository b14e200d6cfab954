"""kill -9 in a stream of commits: nothing acknowledged is lost, no seq is missing, the check is clean."""

import random
import threading

import psycopg
import pytest

from conftest import Gateway, wait_until


def test_notifications_after_the_commit(own_gateway):
    with own_gateway.connect() as writer, own_gateway.connect() as listener:
        writer.execute("CREATE TABLE n (id int PRIMARY KEY)")
        listener.execute("LISTEN skade_commits")
        for i in range(5):
            writer.execute("INSERT INTO n VALUES (%s)", (i,))
            with own_gateway.connect() as tx:
                tx.execute("BEGIN")
                tx.execute("INSERT INTO n VALUES (%s)", (1000 + i,))
                tx.execute("ROLLBACK")
        import json
        seen = []
        for note in listener.notifies(timeout=30, stop_after=5):
            event = json.loads(note.payload)
            seen.append(int(event["seq"]))
            # Whoever was told can see it.
            assert writer.execute("SELECT count(*) FROM n").fetchone()[0] >= len(seen)
        assert len(seen) == 5 and seen == list(range(seen[0], seen[0] + 5))
        assert list(listener.notifies(timeout=0.5)) == []


@pytest.mark.parametrize("rounds", [20])
def test_kill_9(tmp_path, rounds):
    g = Gateway(tmp_path / "data").start()
    with g.connect() as db:
        db.execute("CREATE TABLE k (id bigint PRIMARY KEY, v text)")
    rnd = random.Random(1)
    acknowledged, next_id = set(), 1
    for _ in range(rounds):
        stop = threading.Event()
        done = []

        def work(first):
            try:
                with g.connect() as db:
                    i = first
                    while not stop.is_set():
                        db.execute("INSERT INTO k VALUES (%s, 'x')", (i,))
                        done.append(i)
                        i += 1
            except psycopg.Error:
                pass  # the server was killed under us

        workers = [threading.Thread(target=work, args=(next_id + w * 1_000_000,)) for w in range(3)]
        for w in workers:
            w.start()
        target = rnd.randint(3, 40)
        wait_until(lambda: len(done) >= target, "commits")
        g.kill()
        stop.set()
        for w in workers:
            w.join()
        acknowledged.update(done)
        next_id += 10_000_000
        code, out = g.check()
        assert code == 0, out
        g.start()
        with g.connect() as db:
            have = {r[0] for r in db.execute("SELECT id FROM k").fetchall()}
            assert acknowledged <= have
            seqs = [r[0] for r in db.execute("SELECT DISTINCT commit_seq FROM skade.commits ORDER BY 1").fetchall()]
            assert seqs == list(range(1, len(seqs) + 1))
    g.stop()
