"""table_changes judged by another engine's own reads: for every window, what it shows is the difference of the states at both ends (L1)."""

import collections
import json

from spark import bag, cell


class Judged:
    """A table of another engine. states are (snapshot id, fields, rows), oldest first: fields are (field id, name) in order, rows as that engine reads them at the snapshot."""

    def __init__(self, db, table, key, states):
        self.db, self.table, self.key, self.states = db, table, key, states

    def rows(self, i, fields):
        """The i-th state under the fields of another: by field id, NULL where it has none; the empty table for -1."""
        if i < 0:
            return collections.Counter()
        _, have, rows = self.states[i]
        place = {f: n for n, (f, _) in enumerate(have)}
        return collections.Counter(text(row[place[f]] if f in place else None for f, _ in fields) for row in rows)

    def columns(self, fields):
        return ", ".join(f'"{name}"' for _, name in fields)

    def changes(self, fields, frm, to, net=False):
        function = "table_changes_net" if net else "table_changes"
        sql = f"SELECT _change_type, {self.columns(fields)} FROM {function}('{self.table}', {frm}, {to})"
        return [(kind, text(row)) for kind, *row in self.db.execute(sql).fetchall()], sql

    def window(self, i, j):
        """Checks the window from state i (-1: the beginning) to state j."""
        to, fields, _ = self.states[j]
        frm = "NULL" if i < 0 else self.states[i][0]
        want = self.rows(j, fields)
        want.subtract(self.rows(i, fields))
        want = {k: n for k, n in want.items() if n}
        for net in (False, True):
            got, sql = self.changes(fields, frm, to, net)
            signed = collections.Counter()
            for kind, row in got:
                signed[row] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
            assert {k: n for k, n in signed.items() if n} == want, sql
            self.pairs(got, fields, sql)
            if net:
                assert len(got) == sum(map(abs, want.values())), f"{sql}: nothing is there twice"
                if self.unique(i, fields) and self.unique(j, fields):
                    self.one_a_key(got, fields, sql)

    def pairs(self, got, fields, sql):
        """An UPDATE_BEFORE stands before its UPDATE_AFTER, with the same key and other values."""
        place = [name for _, name in fields].index(self.key) if self.key in [name for _, name in fields] else None
        waiting = None
        for kind, row in got:
            assert (kind == "UPDATE_AFTER") == (waiting is not None), sql
            if waiting is not None:
                assert row != waiting, sql
                if place is not None:
                    assert json.loads(row)[place] == json.loads(waiting)[place], sql
            waiting = row if kind == "UPDATE_BEFORE" else None
        assert waiting is None, sql

    def unique(self, i, fields):
        """Whether the state has each key once."""
        names = [name for _, name in fields]
        if self.key not in names:
            return False
        keys = [json.loads(row)[names.index(self.key)] for row in self.rows(i, fields).elements()]
        return len(set(keys)) == len(keys)

    def one_a_key(self, got, fields, sql):
        place = [name for _, name in fields].index(self.key)
        seen = collections.Counter((kind, repr(json.loads(row)[place])) for kind, row in got)
        assert all(n == 1 for n in seen.values()), sql

    def all_windows(self):
        """Every window of two states, from the beginning too; time travel to each."""
        for j, (snapshot, fields, rows) in enumerate(self.states):
            at = self.db.execute(f"SELECT {self.columns(fields)} FROM table_at('{self.table}', {snapshot})").fetchall()
            assert bag(at) == bag(rows), snapshot
            for i in range(-1, j):
                self.window(i, j)
            assert self.changes(fields, snapshot, snapshot)[0] == []


def text(row):
    return json.dumps([cell(v) for v in row], sort_keys=True)
