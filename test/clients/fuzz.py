"""Random scripts for the differential fuzzer: DDL, DML, queries, transactions, savepoints and errors, one session, from a seed.

The generator asks the judge's catalog what there is, so that most statements mean something; some are wrong on purpose. What depends on
the order of a table's rows (which of two bad rows of an UPDATE is named) is left out or not compared.
"""

import random

TYPES = ["int", "int", "bigint", "smallint", "text", "text", "varchar(6)", "numeric(6,2)", "boolean", "date", "timestamp", "timestamptz", "double precision", "int[]", "jsonb", "uuid", "bytea",
         "time", "interval", "char(3)", "real", "numeric(20,0)"]
KEYS = ["int", "bigint", "text", "date", "numeric(6,2)", "uuid", "timestamp", "varchar(6)", "smallint"]
NAMES = ["t1", "t2", "t3", "t4"]
COLUMNS = ["a", "b", "c", "d", "e", "f"]

LITERALS = {
    "int": ["0", "1", "2", "3", "-1", "7", "100", "2147483647"],
    "bigint": ["0", "1", "2", "3", "9223372036854775807", "-5"],
    "smallint": ["0", "1", "2", "3", "32767", "-4"],
    "text": ["'a'", "'b'", "''", "'ü€'", "'long text here'", "'it''s'"],
    "varchar": ["'a'", "'b'", "''", "'abcdef'", "'abc   '", "'too long'", "'sixsix   '"],
    "numeric": ["0", "1.5", "-2.25", "1.005", "9999.99", "9999.995", "3"],
    "boolean": ["true", "false"],
    "date": ["date '2026-01-02'", "'2026-02-28'", "'1969-12-31'", "date '2024-02-29'"],
    "timestamp": ["timestamp '2026-01-02 03:04:05.678901'", "'2026-03-29 02:30:00'", "'1969-12-31 23:59:59.999999'"],
    "timestamptz": ["timestamptz '2026-01-02 03:04:05+01'", "'2026-07-01 12:00:00+00'"],
    "double precision": ["0", "1.5", "'NaN'::float8", "'-Infinity'::float8", "1e300::float8", "-0.0"],
    "real": ["0", "1.5", "'NaN'::real", "'Infinity'::real", "0.1", "1e30::real"],
    "int[]": ["'{}'", "'{1,2}'", "ARRAY[1,NULL,3]", "ARRAY[2]"],
    "jsonb": ["'{}'", "'{\"a\": 1, \"b\": [1, null]}'", "'null'", "'[1, 2.50]'", "'\"x\"'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000001'"],
    "bytea": ["'\\x00ff'", "'\\x'", "'abc'"],
    "time": ["'10:11:12.5'", "'00:00'", "'23:59:59.999999'"],
    "interval": ["'1 day'", "'-1 mon 2 days 03:04:05.6'", "'0'"],
    "char": ["'a'", "'abc'", "'ab '", "'abcd'"],
}
WRONG = ["'x'", "'99999999999999999999'", "1.5", "'2026-13-01'", "true", "'{'", "-1", "100000000000"]


def base(t):
    t = {"integer": "int", "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "character varying": "varchar", "character": "char", "bpchar": "char",
         "time without time zone": "time", "integer[]": "int[]", "ARRAY": "int[]"}.get(t, t)
    for p in ("varchar", "numeric", "char"):
        if t.startswith(p) and t[len(p):len(p) + 1] in ("", "("):
            return p
    return t


class Table:
    def __init__(self, name, kind):
        self.name, self.kind, self.columns, self.key, self.generated = name, kind, {}, [], set()


class Script:
    def __init__(self, seed, ask):
        """ask runs a query on the judge and returns its rows, or None in a failed transaction."""
        self.r, self.ask, self.tables, self.savepoints, self.prepared, self.cursors = random.Random(seed), ask, {}, [], [], []
        self.n = 0

    def look(self):
        rows = self.ask("""SELECT c.relname, c.relkind, a.attname, format_type(a.atttypid, NULL), a.attgenerated <> '', coalesce(a.attnum = ANY (i.indkey), false)
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped LEFT JOIN pg_index i ON i.indrelid = c.oid
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') ORDER BY 1, attnum""")
        if rows is None:
            return
        self.tables = {}
        for name, kind, column, typ, generated, key in rows:
            t = self.tables.setdefault(name, Table(name, kind))
            t.columns[column] = base(typ)
            if generated == "t":
                t.generated.add(column)
            if key == "t":
                t.key.append(column)

    def one(self, *choices):
        return self.r.choice(choices)

    def chance(self, p):
        return self.r.random() < p

    def table(self, kind="r"):
        some = [t for t in self.tables.values() if t.kind in kind]
        if not some or self.chance(0.01):
            t = Table("nosuch", "r")
            t.columns = {"a": "int", "b": "text"}
            return t
        return self.r.choice(some)

    def column(self, t, types=None):
        some = [c for c, k in t.columns.items() if types is None or k in types]
        if not some or self.chance(0.01):
            return self.one(*COLUMNS)
        return self.r.choice(some)

    def literal(self, typ, wrong=0.03):
        if self.chance(0.08):
            return "NULL"
        if self.chance(wrong):
            return self.one(*WRONG)
        return self.r.choice(LITERALS.get(typ, ["1"]))

    def expr(self, typ, scope, depth=0):
        """An expression of about the type over the columns of scope: {alias: Table}."""
        columns = [f"{a}.{c}" if a else c for a, t in scope.items() for c, k in t.columns.items() if k == typ]
        if columns and self.chance(0.5):
            return self.r.choice(columns)
        if depth > 1 or self.chance(0.4) or not any(t.columns for t in scope.values()):
            return self.literal(typ, 0.01)
        sub = lambda k: self.expr(k, scope, depth + 1)  # noqa: E731
        if typ in ("int", "bigint", "smallint", "numeric", "double precision", "real"):
            own = columns and self.r.choice(columns) or "NULL::" + typ
            return self.one(lambda: f"({own} {self.one('+', '-', '*')} {sub(typ)})", lambda: f"CASE WHEN {self.condition(scope, depth + 1)} THEN {sub(typ)} ELSE {sub(typ)} END",
                            lambda: f"coalesce({sub(typ)}, {sub(typ)})", lambda: f"({own} / {sub(typ)})" if typ != "double precision" else f"abs({sub(typ)})",
                            lambda: f"length({sub('text')})", lambda: f"{sub(typ)}::{typ}", lambda: f"greatest({sub(typ)}, {sub(typ)})")()
        if typ in ("text", "varchar", "char"):
            return self.one(lambda: f"({sub('text')} || {sub('text')})", lambda: f"upper({sub('text')})", lambda: f"{sub('int')}::text", lambda: f"substr({sub('text')}, 2)",
                            lambda: f"coalesce({sub('text')}, 'none')", lambda: f"{sub(self.one('date', 'numeric', 'boolean', 'timestamp', 'jsonb', 'bytea'))}::text")()
        if typ == "boolean":
            return f"({self.condition(scope, depth + 1)})"
        if typ in ("date", "timestamp", "timestamptz"):
            return self.one(lambda: f"({sub(typ)} + interval '1 day')::{typ}", lambda: f"{sub(self.one('date', 'timestamp', 'timestamptz'))}::{typ}")()
        if typ == "int[]":
            return f"ARRAY[{sub('int')}, {sub('int')}]::int[]"
        return self.literal(typ, 0.01)

    def condition(self, scope, depth=0):
        typ = self.one("int", "text", "numeric", "date", "bigint", "boolean", "timestamp")
        if scope and self.chance(0.7):
            a, t = self.r.choice(list(scope.items()))
            if t.columns:
                c = self.r.choice(list(t.columns))
                typ = t.columns[c]
                col = f"{a}.{c}" if a else c
                if typ in ("jsonb", "boolean") or self.chance(0.15):
                    return f"{col} IS {self.one('', 'NOT ')}NULL"
                return self.one(lambda: f"{col} {self.one('=', '<>', '<', '>=')} {self.literal(typ)}", lambda: f"{col} {self.one('=', '<', '>')} {self.expr(typ, scope, depth + 1)}",
                                lambda: f"{col} IN ({self.literal(typ)}, {self.literal(typ)})", lambda: f"{col} = ANY (ARRAY[{self.literal(typ, 0)}, {self.literal(typ, 0)}]::{typ}[])" if typ != "int[]" else f"{col} = '{{}}'",
                                lambda: f"{col} BETWEEN {self.literal(typ)} AND {self.literal(typ)}", lambda: f"NOT ({self.condition(scope, depth + 1)})" if depth < 2 else "true",
                                lambda: f"({self.condition(scope, depth + 1)} {self.one('AND', 'OR')} {self.condition(scope, depth + 1)})" if depth < 2 else "false",
                                lambda: f"{col} IS DISTINCT FROM {self.literal(typ)}")()
        if depth > 1:
            return self.one("true", "false")
        if typ == "boolean":
            return self.literal("boolean", 0)
        return f"{self.expr(typ, scope, depth + 1)} {self.one('=', '<', '<>')} {self.expr(typ, scope, depth + 1)}"

    def where(self, scope):
        return f" WHERE {self.condition(scope)}" if self.chance(0.75) else ""

    # Statements.

    def create(self):
        name = self.one(*NAMES)
        free = [n for n in NAMES if n not in self.tables]
        if free and self.chance(0.9):
            name = self.r.choice(free)
        if self.tables and self.chance(0.15):
            return f"CREATE TABLE {name} AS {self.select(plain=True)}"
        if self.tables and self.chance(0.08):
            return f"CREATE TABLE {name} (LIKE {self.table().name} INCLUDING ALL)"
        cols, used = [], self.r.sample(COLUMNS, self.r.randint(2, 5))
        if self.chance(0.1):
            cols.append(f"\"Odd n\u00e4me\" {self.one(*TYPES)}")
        key = self.chance(0.75)
        for i, c in enumerate(used):
            typ = self.one(*KEYS) if i == 0 and key else self.one(*TYPES)
            b, d = base(typ), f"{c} {typ}"
            if i == 0 and key and self.chance(0.7):
                d, key = d + " PRIMARY KEY", False
            elif self.chance(0.2):
                d += " NOT NULL"
            if i and self.chance(0.2):
                d += f" DEFAULT {self.literal(b, 0.05)}"
            elif i > 1 and self.chance(0.08):
                d += f" GENERATED ALWAYS AS ({self.one('length', 'lower')}({used[0]}::text)) STORED"
            elif self.chance(0.1):
                d += f" CHECK ({c} {self.one('<>') if b == 'jsonb' else self.one('>', '<>', '<=')} {self.literal(b, 0)})"
            cols.append(d)
        if key:
            cols.append(f"PRIMARY KEY ({', '.join(used[:self.r.randint(1, 2)])})")
        elif self.chance(0.1):
            cols.append(f"CONSTRAINT ck CHECK ({used[0]} IS NOT NULL OR {used[1]} IS NULL)")
        return f"CREATE TABLE {'IF NOT EXISTS ' if self.chance(0.1) else ''}{name} ({', '.join(cols)})"

    def drop(self):
        t = self.table("rv")
        return f"DROP {'TABLE' if t.kind == 'r' or self.chance(0.1) else 'VIEW'} {self.one('', '', 'IF EXISTS ')}{t.name}{self.one('', '', ' CASCADE')}"

    def view(self):
        return f"CREATE {self.one('', 'OR REPLACE ')}VIEW {self.one('v1', 'v2')} AS {self.select(plain=True)}"

    def alter(self):
        t = self.table()
        c, c2 = self.column(t), self.one(*COLUMNS)
        typ = self.one(*TYPES)
        actions = [
            lambda: f"ADD COLUMN {self.one('', 'IF NOT EXISTS ')}{c2} {typ}{f' DEFAULT {self.literal(base(typ))}' if self.chance(0.5) else ''}{self.one('', '', ' NOT NULL')}",
            lambda: f"ADD COLUMN {c2} {typ} {self.one('', 'DEFAULT ' + self.literal(base(typ), 0))}",
            lambda: f"DROP COLUMN {self.one('', 'IF EXISTS ')}{c}{self.one('', '', ' CASCADE')}",
            lambda: f"ALTER COLUMN {c} TYPE {self.one(*TYPES)}",
            lambda: f"ALTER COLUMN {c} TYPE {typ} USING {self.expr(base(typ), {'': t})}",
            lambda: f"ALTER COLUMN {c} SET NOT NULL",
            lambda: f"ALTER COLUMN {c} DROP NOT NULL",
            lambda: f"ALTER COLUMN {c} SET DEFAULT {self.literal(t.columns.get(c, 'int'), 0.1)}",
            lambda: f"ALTER COLUMN {c} DROP DEFAULT",
            lambda: f"ADD PRIMARY KEY ({c})",
            lambda: f"DROP CONSTRAINT {self.one('', 'IF EXISTS ')}{self.one(t.name + '_pkey', 'ck', 'ck2', t.name + '_' + c + '_check')}",
            lambda: f"ADD CONSTRAINT {self.one('ck', 'ck2')} CHECK ({self.condition({'': t})}){self.one('', ' NOT VALID')}",
            lambda: f"VALIDATE CONSTRAINT {self.one('ck', 'ck2')}",
        ]
        if self.chance(0.25):
            return f"ALTER TABLE {t.name} " + self.one(f"RENAME TO {self.one(*NAMES)}", f"RENAME COLUMN {c} TO {c2}", f"RENAME {c} TO {c2}", f"RENAME CONSTRAINT ck TO {self.one('ck2', 'ck3')}")
        return f"ALTER TABLE {self.one('', 'IF EXISTS ', 'ONLY ')}{t.name} " + ", ".join(self.r.choice(actions)() for _ in range(self.one(1, 1, 1, 2, 3)))

    def row(self, t, cols):
        return "(" + ", ".join("DEFAULT" if self.chance(0.06) or c in t.generated and self.chance(0.9) else self.literal(t.columns[c]) if self.chance(0.85) else self.expr(t.columns[c], {}) for c in cols) + ")"

    def insert(self, depth=0):
        t = self.table("r" if self.chance(0.98) else "v")
        cols = [c for c in t.columns if c not in t.generated or self.chance(0.05)]
        if self.chance(0.3) and cols:
            cols = self.r.sample(cols, self.r.randint(1, len(cols)))
        q = [quote(c) for c in cols]
        sql = f"INSERT INTO {t.name} {f'({chr(44).join(q)})' if len(cols) != len(t.columns) or self.chance(0.5) else ''} "
        kind = self.r.random()
        if kind < 0.05:
            sql = f"INSERT INTO {t.name} DEFAULT VALUES"
        elif kind < 0.7:
            sql += "VALUES " + ", ".join(self.row(t, cols) for _ in range(self.one(1, 1, 2, 3, 6)))
        else:
            s = self.table("rv")
            sql += f"SELECT {', '.join(self.expr(t.columns[c], {'s': s}) for c in cols)} FROM {s.name} s{self.where({'s': s})}"
        if self.chance(0.3) and kind >= 0.05:
            target = f" ({', '.join(quote(k) for k in t.key)})" if t.key and self.chance(0.95) else ""
            others = [c for c in t.columns if c not in t.key and c not in t.generated]
            if self.chance(0.4) or not others or not target:
                sql += f" ON CONFLICT{target if self.chance(0.7) else ''} DO NOTHING"
            else:
                c = self.r.choice(others)
                ex = Table("excluded", "r")
                ex.columns = t.columns
                sql += f" ON CONFLICT{target} DO UPDATE SET {quote(c)} = {self.expr(t.columns[c], {'excluded': ex, t.name: t})}"
                if self.chance(0.3):
                    sql += f" WHERE {self.condition({'excluded': ex, t.name: t})}"
        return sql + self.returning({t.name: t})

    def returning(self, scope):
        if not self.chance(0.3):
            return ""
        if self.chance(0.5):
            return " RETURNING *"
        return " RETURNING " + ", ".join(self.expr(self.one("int", "text", "numeric", "date"), scope) for _ in range(2))

    def sets(self, t, scope):
        cols = [c for c in t.columns if c not in t.generated and (c not in t.key or self.chance(0.15))] or list(t.columns)
        some = self.r.sample(cols, min(len(cols), self.one(1, 1, 2)))
        return ", ".join(f"{quote(c)} = {'DEFAULT' if self.chance(0.05) else self.expr(t.columns[c], scope)}" for c in some)

    def update(self):
        t = self.table()
        if self.chance(0.25):
            s = self.table("rv")
            scope = {"x": t, "s": s}
            same = self.join(t, s, "x", "s")
            return f"UPDATE {t.name} x SET {self.sets(t, {'x': t})} FROM {s.name} s WHERE {same}{self.returning({'x': t})}"
        scope = {t.name: t}
        return f"UPDATE {t.name} SET {self.sets(t, scope)}{self.where(scope)}{self.returning(scope)}"

    def join(self, t, s, a, b):
        both = [(c, d) for c, k in t.columns.items() for d, l in s.columns.items() if k == l]
        if both:
            c, d = self.r.choice(both)
            return f"{a}.{quote(c)} = {b}.{quote(d)}"
        return "true"

    def delete(self):
        t = self.table()
        if self.chance(0.2):
            s = self.table("rv")
            return f"DELETE FROM {t.name} x USING {s.name} s WHERE {self.join(t, s, 'x', 's')}{self.returning({'x': t})}"
        return f"DELETE FROM {t.name} WHERE {self.condition({t.name: t})}{self.returning({t.name: t})}"

    def merge(self):
        t, s = self.table(), self.table("rv")
        key = t.key[0] if t.key else self.column(t)
        same = [d for d, k in s.columns.items() if k == t.columns.get(key)]
        src = f"(SELECT DISTINCT ON ({quote(same[0])}) * FROM {s.name} ORDER BY {quote(same[0])}, {', '.join(quote(c) for c, k in s.columns.items() if k != 'jsonb' or True)})" if same else s.name
        sql = f"MERGE INTO {t.name} x USING {src} s ON x.{quote(key)} = s.{quote(same[0]) if same else quote(self.column(s))}"
        if self.chance(0.4):
            sql += f" WHEN MATCHED AND {self.condition({'x': t, 's': s})} THEN {self.one('DELETE', 'DO NOTHING')}"
        if self.chance(0.8):
            sql += f" WHEN MATCHED THEN UPDATE SET {self.sets(t, {'x': t, 's': s})}"
        cols = [c for c in t.columns if c not in t.generated]
        if self.chance(0.8) or "WHEN" not in sql:
            sql += f" WHEN NOT MATCHED THEN INSERT ({', '.join(quote(c) for c in cols)}) VALUES ({', '.join(self.expr(t.columns[c], {'s': s}) for c in cols)})"
        return sql

    def with_dml(self):
        dml = self.one(self.insert, self.update, self.delete)()
        if " RETURNING " not in dml:
            dml += " RETURNING *"
        if self.chance(0.5):
            return f"WITH w AS ({dml}) SELECT count(*) FROM w"
        other = self.one(self.insert, self.update, self.delete)()
        return f"WITH w AS ({dml}) {other}"

    def select(self, plain=False):
        t = self.table("rv")
        kind = self.r.random()
        if kind < 0.3 or plain and kind < 0.6:
            cols = [quote(c) for c in self.r.sample(list(t.columns), self.r.randint(1, len(t.columns)))] if t.columns else ["1 AS one"]
            return f"SELECT {', '.join(cols)} FROM {t.name}{self.where({'': t})}"
        if plain:
            return f"SELECT * FROM {t.name}{self.where({'': t})}"
        if kind < 0.5:
            s = self.table("rv")
            return f"SELECT count(*), {', '.join(self.expr('int', {'x': t}) + ' AS k' for _ in [0])} FROM {t.name} x {self.one('JOIN', 'LEFT JOIN', 'FULL JOIN')} {s.name} s ON {self.join(t, s, 'x', 's')} GROUP BY 2"
        if kind < 0.65:
            c = self.column(t)
            return f"SELECT count(*), count({quote(c)}), min({quote(c)}::text), max({quote(c)}::text) FROM {t.name}{self.where({'': t})}"
        if kind < 0.8:
            return f"SELECT {', '.join(self.expr(self.one('int', 'text', 'numeric', 'date', 'boolean', 'timestamp', 'bigint', 'double precision'), {'': t}) for _ in range(3))} FROM {t.name}{self.where({'': t})}"
        return f"SELECT * FROM {t.name}{self.where({'': t})}{self.one('', '', ' FOR UPDATE', ' FOR SHARE')}"

    def copy(self):
        t = self.table()
        lines = []
        for _ in range(self.r.randint(0, 4)):
            lines.append("\t".join("\\N" if self.chance(0.1) else self.literal(k).strip("'").split("'")[0].replace("\\", "\\\\") for c, k in t.columns.items() if c not in t.generated))
        cols = ", ".join(quote(c) for c in t.columns if c not in t.generated)
        return (f"COPY {t.name} ({cols}) FROM STDIN", "".join(x + "\n" for x in lines).encode())

    def transaction(self, status):
        if status == "IDLE":
            return self.one("BEGIN", "BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL SERIALIZABLE", "SAVEPOINT s1")
        if status == "INERROR":
            return self.one("ROLLBACK", "COMMIT", "ROLLBACK TO s1", "ROLLBACK TO s2", "ROLLBACK TO s1")
        return self.one("COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s1", "SAVEPOINT s2", "SAVEPOINT s1", "RELEASE s1", "RELEASE s2", "ROLLBACK TO s1", "ROLLBACK TO s2", "BEGIN", "COMMIT AND CHAIN")

    def portal(self, status):
        self.n += 1
        if self.cursors and self.chance(0.6):
            c = self.r.choice(self.cursors)
            return self.one(f"FETCH ALL FROM {c}", f"FETCH 2 FROM {c}", f"MOVE 1 IN {c}", f"CLOSE {c}")
        if status == "INTRANS":
            self.cursors.append(f"cur{self.n}")
            return f"DECLARE cur{self.n} CURSOR {self.one('', 'WITH HOLD ')}FOR {self.select(plain=True)}"
        if self.prepared and self.chance(0.7):
            return f"EXECUTE {self.r.choice(self.prepared)}"
        self.prepared.append(f"p{self.n}")
        return f"PREPARE p{self.n} AS {self.one(self.insert, self.update, self.delete, self.select)()}"

    def next(self, status):
        """The next statement, and the bytes of a COPY."""
        if status != "INERROR":
            self.look()
        p = self.r.random()
        if p < (0.5 if status == "INERROR" else 0.2 if status == "INTRANS" else 0.1):
            return self.transaction(status), None
        if len([t for t in self.tables.values() if t.kind == "r"]) < 2 and self.chance(0.6):
            return self.create(), None
        kinds = [(3, self.create), (2, self.drop), (14, self.alter), (22, self.insert), (12, self.update), (7, self.delete), (5, self.merge), (5, self.with_dml), (14, self.select), (2, self.view),
                 (2, lambda: f"TRUNCATE {self.table().name}{self.one('', ', ' + self.table().name)}"), (3, self.copy), (5, lambda: self.portal(status))]
        made = self.r.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()
        return made if isinstance(made, tuple) else (made, None)


def quote(name):
    return name if name.isidentifier() and name.islower() and name.isascii() else '"' + name + '"'
