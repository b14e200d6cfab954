"""Isolation cases: steps of several sessions in a given order, run on one server, with who waits for whom.

A spec file is written like PostgreSQL's src/test/isolation/specs:

    setup { SQL }  teardown { SQL }
    session s1   setup { SQL }   step name { SQL } …
    permutation name name …      the order in which steps are sent
    differs "why"                after a permutation: the answer must be another one here, and why
"""

import re
import select
import time

from psycopg import pq

TOKEN = re.compile(r"\s*(?:#[^\n]*|\{(?P<block>[^}]*)\}|\"(?P<quoted>[^\"]*)\"|(?P<word>[\w.-]+))")


# Who is blocked for so many seconds waits: a deadlock that is found after 10 ms is over by then.
LONG = 0.15


class Spec:
    def __init__(self, path):
        self.name, self.setup, self.teardown = path.stem, [], []
        self.sessions, self.steps, self.permutations = {}, {}, []
        session, words = None, iter(self.tokens(path.read_text()))
        for kind, word in words:
            if kind == "quoted":
                raise ValueError(f"{path}: unexpected {word!r}")
            if word == "permutation":
                self.permutations.append([[], None])
            elif word == "differs":
                self.permutations[-1][1] = next(words)[1]
            elif word in ("setup", "teardown"):
                block = next(words)[1]
                if session is None:
                    getattr(self, word).append(block)
                else:
                    assert word == "setup", "sessions have no teardown"
                    self.sessions[session].append(block)
            elif word == "session":
                session = next(words)[1]
                self.sessions[session] = []
            elif word == "step":
                name = next(words)[1]
                self.steps[name] = (session, next(words)[1].strip())
            elif self.permutations:
                assert word in self.steps, f"{path}: no step {word}"
                self.permutations[-1][0].append(word)
            else:
                raise ValueError(f"{path}: unexpected {word!r}")

    @staticmethod
    def tokens(text):
        at = 0
        while m := TOKEN.match(text, at):
            at = m.end()
            if m.lastgroup:
                yield m.lastgroup, m[m.lastgroup]
        assert not text[at:].strip(), f"cannot read {text[at:at + 40]!r}"


class Session:
    def __init__(self, url):
        self.conn = pq.PGconn.connect(url.encode())
        assert self.conn.status == pq.ConnStatus.OK, self.conn.error_message
        self.conn.notice_handler = lambda _: None
        self.step = None

    def send(self, step, sql):
        self.step, self.answers = step, []
        self.conn.send_query(sql.encode())

    def done(self, seconds):
        """Reads what is there; True when the statement has ended."""
        if select.select([self.conn.socket], [], [], seconds)[0]:
            self.conn.consume_input()
        while not self.conn.is_busy():
            r = self.conn.get_result()
            if r is None:
                return True
            self.answers.append(self.describe(r))
        return False

    @staticmethod
    def describe(r):
        if r.status == pq.ExecStatus.FATAL_ERROR:
            text = (r.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
            return "ERROR " + (r.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode() + " " + text
        if r.status != pq.ExecStatus.TUPLES_OK:
            return (r.command_status or b"").decode()
        rows = [[(r.get_value(i, j) or b"NULL").decode() for j in range(r.nfields)] for i in range(r.ntuples)]
        return str(rows)

    def exec(self, sql):
        r = self.conn.exec_(sql.encode())
        assert r.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY), (sql, r.error_message.decode())
        return r

    def close(self):
        self.conn.finish()


class Run:
    """One permutation on one server. events are what happened, in order."""

    def __init__(self, url, spec, order, seconds=60):
        self.spec, self.events, self.deadline = spec, [], time.monotonic() + seconds
        self.control = Session(url)
        self.sessions = {}
        try:
            for block in spec.setup:
                for sql in filter(str.strip, block.split(";")):
                    self.control.exec(sql)
            for name, blocks in spec.sessions.items():
                self.sessions[name] = Session(url)
                for block in blocks:
                    for sql in filter(str.strip, block.split(";")):
                        self.sessions[name].exec(sql)
            self.run(order)
        finally:
            for s in self.sessions.values():
                s.close()
            self.wait_gone()
            for block in spec.teardown:
                for sql in filter(str.strip, block.split(";")):
                    self.control.exec(sql)
            self.control.close()

    def wait_gone(self):
        """Closed sessions may hold locks for a moment."""
        pids = [str(s.pid) for s in self.sessions.values() if hasattr(s, "pid")]
        while pids and time.monotonic() < self.deadline:
            r = self.control.exec(f"SELECT count(*) FROM pg_stat_activity WHERE pid IN ({','.join(pids)})")
            if r.get_value(0, 0) == b"0":
                return
            time.sleep(0.005)

    def run(self, order):
        for s in self.sessions.values():
            s.pid = s.conn.backend_pid
        for step in order:
            name, sql = self.spec.steps[step]
            s = self.sessions[name]
            if s.step is not None:  # it waits: only its end can go on
                self.settle(s, must_end=True)
            s.send(step, sql)
            self.settle(s)
            for other in self.sessions.values():
                if other is not s and other.step is not None:
                    self.settle(other)
        for s in self.sessions.values():
            if s.step is not None:
                self.settle(s, must_end=True)

    def settle(self, s, must_end=False):
        """Waits until the session's step has ended, or is seen to wait for a lock."""
        pause, seen = 0.002, None
        while not s.done(pause):
            assert time.monotonic() < self.deadline, f"{s.step} hangs after {self.events}"
            if must_end or not self.blocked(s):
                seen = None
            elif seen is None:
                seen = time.monotonic()
            elif time.monotonic() - seen > LONG:
                event = f"{s.step}: waits"
                if event not in self.events:
                    self.events.append(event)
                return
            pause = min(pause * 2, 0.05)
        self.events.append(f"{s.step}: " + " | ".join(s.answers))
        s.step = None

    def blocked(self, s):
        return self.control.exec(f"SELECT pg_blocking_pids({s.pid})").get_value(0, 0) != b"{}"
