"""Runs one statement on a server and keeps all that the protocol says about it, so that two servers can be compared.

A Reply is one result: its columns (name, type OID, typmod, attribute number, from a table or not), its rows as bytes, its command
tag, or its error (SQLSTATE, position, message). An Answer is the replies of a statement, the types of its parameters, its notices
and the transaction status behind it.
"""

import dataclasses
import re

from psycopg import pq

TEXT, BINARY = 0, 1
OK = {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.SINGLE_TUPLE}


@dataclasses.dataclass
class Reply:
    tag: str = ""
    columns: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)
    state: str = ""
    position: str = ""
    message: str = ""
    detail: str = ""
    hint: str = ""


@dataclasses.dataclass
class Answer:
    replies: list
    params: list
    notices: list
    status: str


class Side:
    """One connection to one server."""

    def __init__(self, url, options="-c timezone=Europe/Oslo -c statement_timeout=30s"):
        self.url = url
        self.conn = pq.PGconn.connect(f"{url}&options={options.replace(' ', '%20').replace('=', '%3D').replace('/', '%2F')}".encode())
        assert self.conn.status == pq.ConnStatus.OK, self.conn.error_message
        self.notices = []
        self.conn.notice_handler = lambda r: self.notices.append((field(r, "SEVERITY_NONLOCALIZED"), field(r, "SQLSTATE"), field(r, "MESSAGE_PRIMARY")))
        self.names = {}  # OID of a user's object -> its name

    def close(self):
        self.conn.finish()

    def run(self, sql, mode="simple", params=None, types=None, formats=None, copy=None):
        """mode: simple, text (extended, results in text), binary (extended, results in binary)."""
        self.notices.clear()
        c, described = self.conn, []
        if mode == "simple":
            c.send_query(sql.encode())
        else:
            r = c.prepare(b"", sql.encode(), types)
            if r.status != pq.ExecStatus.COMMAND_OK:
                return self.answer([self.reply(r)], [])
            d = c.describe_prepared(b"")
            if d.status != pq.ExecStatus.COMMAND_OK:
                return self.answer([self.reply(d)], [])
            described = [self.type_name(d.param_type(i)) for i in range(d.nparams)]
            columns = self.columns(d)
            c.send_query_prepared(b"", params or [], formats, BINARY if mode == "binary" else TEXT)
        replies = []
        while r := c.get_result():
            replies.append(self.reply(r))
            if r.status == pq.ExecStatus.COPY_OUT:
                while True:
                    n, data = c.get_copy_data(0)
                    if n <= 0:
                        break
                    replies[-1].rows.append([bytes(data)])
            elif r.status == pq.ExecStatus.COPY_IN:
                c.put_copy_data(copy or b"")
                c.put_copy_end()
        if mode != "simple" and replies and replies[0].columns:
            assert columns == replies[0].columns, f"Describe of the statement says {columns}, of the portal {replies[0].columns}"
        return self.answer(replies, described)

    def answer(self, replies, params):
        return Answer(replies, params, list(self.notices), pq.TransactionStatus(self.conn.transaction_status).name)

    def reply(self, r):
        if r.status in (pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_IN):
            return Reply(tag=pq.ExecStatus(r.status).name, columns=[(i, r.fformat(i)) for i in range(r.nfields)])
        if r.status in OK:
            return Reply(tag=(r.command_status or b"").decode(), columns=self.columns(r),
                         rows=[[r.get_value(i, j) for j in range(r.nfields)] for i in range(r.ntuples)])
        if r.status == pq.ExecStatus.EMPTY_QUERY:
            return Reply(tag="(empty)")
        return Reply(state=field(r, "SQLSTATE"), position=field(r, "STATEMENT_POSITION"), message=field(r, "MESSAGE_PRIMARY") or r.error_message.decode(),
                     detail=field(r, "MESSAGE_DETAIL"), hint=field(r, "MESSAGE_HINT"))

    def columns(self, r):
        return [(r.fname(i).decode(), self.type_name(r.ftype(i)), r.fmod(i), r.fsize(i), bool(r.ftable(i)), r.ftablecol(i)) for i in range(r.nfields)]

    def type_name(self, oid):
        return self.names.get(oid, oid)

    def learn(self):
        """Learns the names of user objects, so that their OIDs can be compared."""
        for kind, sql in NAMES.items():
            r = self.conn.exec_(sql.encode())
            assert r.status in OK, (kind, r.error_message)
            for i in range(r.ntuples):
                self.names[int(r.get_value(i, 0))] = f"<{kind} {r.get_value(i, 1).decode()}>"

    def known(self, value, type_oid):
        """A value with the OIDs of user objects replaced by names."""
        if value is None:
            return None
        if type_oid in (26, 24, 2202, 2203, 2204, 2205, 2206, 4089, 4096) and len(value) == 4 and not value.isdigit():
            oid = int.from_bytes(value, "big")
            return self.names.get(oid, oid)
        return re.sub(rb"\b\d{5,}\b", lambda m: self.names.get(int(m[0]), m[0].decode()).encode(), value)


NAMES = {
    "schema": "SELECT oid, nspname FROM pg_namespace WHERE oid >= 16384 OR nspname = 'public'",
    "relation": "SELECT c.oid, n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid >= 16384 AND n.nspname !~ '^pg_'",
    "type": "SELECT t.oid, n.nspname || '.' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE t.oid >= 16384 AND n.nspname !~ '^pg_'",
    "constraint": "SELECT c.oid, n.nspname || '.' || c.conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace WHERE c.oid >= 16384",
    "rule": "SELECT r.oid, r.rulename || ' on ' || c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE r.oid >= 16384",
    "database": "SELECT oid, datname FROM pg_database WHERE oid >= 16384 OR datname = current_database()",
}


def field(r, name):
    v = r.error_field(pq.DiagnosticField[name])
    return v.decode() if v else ""


def differences(want, got, ordered=True, normal=None, messages=True):
    """What differs between PostgreSQL's answer and ours, as lines; empty when nothing does."""
    out = []
    normal = normal or (lambda side, rows, columns: rows)

    def note(what, w, g):
        if w != g:
            out.append(f"{what}: PostgreSQL {w!r}, here {g!r}")

    note("number of results", [r.tag or r.state for r in want.replies], [r.tag or r.state for r in got.replies])
    note("parameter types", want.params, got.params)
    note("transaction status", want.status, got.status)
    note("notices", want.notices, got.notices)
    for w, g in zip(want.replies, got.replies):
        note("SQLSTATE", (w.state, w.message) if w.state != g.state else "", (g.state, g.message) if w.state != g.state else "")
        if w.state != g.state:
            continue
        if messages:
            note("message", w.message, g.message)
            note("detail", w.detail, g.detail)
            note("hint", w.hint, g.hint)
        note("position", w.position, g.position)
        note("tag", w.tag, g.tag)
        if w.columns != g.columns:
            if len(w.columns) != len(g.columns):
                note("columns", w.columns, g.columns)
            for a, b in zip(w.columns, g.columns):
                note("column (name, type, typmod, size, from a table, attribute)", a, b)
        a, b = normal("want", w.rows, w.columns), normal("got", g.rows, g.columns)
        if not ordered:
            a, b = sorted(a, key=repr), sorted(b, key=repr)
        if a != b:
            if len(a) != len(b):
                out.append(f"rows: PostgreSQL {len(a)}, here {len(b)}")
                missing, extra = [r for r in a if r not in b], [r for r in b if r not in a]
                out += [f"  missing {r}" for r in missing[:3]] + [f"  extra   {r}" for r in extra[:3]]
            else:
                bad = [(x, y) for x, y in zip(a, b) if x != y]
                for x, y in bad[:3]:
                    cells = [(w.columns[i][0] if i < len(w.columns) else i, p, q) for i, (p, q) in enumerate(zip(x, y)) if p != q]
                    out.append(f"row: {'; '.join(f'{n}: PostgreSQL {p!r}, here {q!r}' for n, p, q in cells)}")
    return out
