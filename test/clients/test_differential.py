"""The same statements go to PostgreSQL 15 and to the gateway, and what the protocol says is compared: columns (names, type OIDs, typmods),
values in text and binary, command tags, SQLSTATEs, messages and error positions, notices, transaction status."""

import re

import pytest

import compare
import corpus
from conftest import SHARED, Gateway
from postgres import Postgres

FILES = sorted(corpus.HERE.glob("*.sql"))
LOGS = sorted((SHARED / "clients").glob("*.log"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    judge, gateway = Postgres().start(), Gateway(tmp_path_factory.mktemp("differential") / "data").start()
    try:
        yield judge, gateway
    finally:
        judge.stop()
        gateway.stop()


@pytest.fixture
def sides(servers):
    a, b = compare.Side(servers[0].url), compare.Side(servers[1].url)
    yield a, b
    a.close()
    b.close()


# Statements of the clients whose answer must be another one here, and why.
CLIENT_DIFFERENCES = {
    r"pg_catalog\.version\(\)$": "version() names the product",
    r"(?i)^show transaction[ _]isolation": "the default is repeatable read: snapshot isolation",
    r"pg_catalog\.pg_database d\s": "one database, no templates",
    r"pg_language l\b|pg_catalog\.pg_extension e\b": "no PL/pgSQL",
    r"pg_table_size|pg_total_relation_size|CARDINALITY": "sizes and row counts are of Parquet files",
    r"FROM pg_catalog\.pg_settings s": "settings come from other places",
    r"pg_get_viewdef": "a view's definition is shown as written",
}
# Columns that hold a schema's name: rows of schema skade (the product's views and functions) are left out of the comparison.
SCHEMA_COLUMNS = {"Schema", "nspname", "table_schem", "type_schem", "procedure_schem", "function_schem", "schema"}


@pytest.fixture(scope="module")
def sales(servers):
    script = (SHARED / "clients" / "schema.sql").read_text()
    for server in servers:
        side = compare.Side(server.url)
        answer = side.run(script)
        assert all(r.state == "" for r in answer.replies), answer
        side.close()


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_clients(sides, sales, path):
    """What real clients ask; logs hold no formats, so that results are asked for in both."""
    for s in sides:
        s.learn()
    postgres, ours = sides
    bad = []
    relation = {s: str(next(o for o, n in s.names.items() if n == "<relation sales.orders>")) for s in sides}
    view = {s: str(next(o for o, n in s.names.items() if n == "<relation sales.v>")) for s in sides}
    for st in corpus.client_log(path):
        for mode in (["text", "binary"] if st.extended else ["simple", "binary"] if st.reads else ["simple"]):
            answers = []
            for s in sides:
                oids = {"16386": relation[s], "16393": view[s]}
                sql = re.sub(r"\b(16386|16393)\b", lambda m: oids[m[0]], st.sql)
                answers.append(s.run(sql, mode, [p and re.sub(rb"^(16386|16393)$", lambda m: oids[m[0].decode()].encode(), p) for p in st.params]))
            by = {"want": postgres, "got": ours}

            def normal(side, rows, columns):
                schema = [i for i, c in enumerate(columns) if c[0] in SCHEMA_COLUMNS or c[0] == "Name" and "nspowner" in st.sql]
                rows = [[by[side].known(v, columns[i][1]) for i, v in enumerate(r)] for r in rows]
                kept = [r for r in rows if not any(r[i] == b"skade" for i in schema) and not any(" skade." in str(v) for v in r)]
                if len(kept) < len(rows):
                    shorter.append(f"SELECT {len(kept)}")
                return kept

            shorter = []
            for x in answers[1].replies:
                normal("got", x.rows, x.columns)
                if shorter:  # the count in the tag counts the product's own objects, too
                    x.tag = shorter[0]
            # OIDs of user objects are given in another order.
            diff = compare.differences(*answers, st.ordered and "oid DESC" not in st.sql, normal)
            why = next((w for pattern, w in CLIENT_DIFFERENCES.items() if re.search(pattern, st.sql, re.S)), "")
            if diff and not why:
                bad.append(f"{path.name}:{st.line} ({mode}) {st.sql[:400]} {st.params}\n    " + "\n    ".join(diff))
                break
    assert not bad, f"{len(bad)} statements differ:\n" + "\n".join(bad)


def run_file(sides, path, schema):
    postgres, ours = sides
    for s in sides:
        s.run(f"CREATE SCHEMA {schema}")
        s.run(f"SET search_path = {schema}")
    bad = []
    for nth, st in enumerate(corpus.statements(path)):
        for mode in st.modes(nth):
            want, got = postgres.run(st.sql, mode, copy=st.copy), ours.run(st.sql, mode, copy=st.copy)
            if re.match(r"\s*create\s", st.sql, re.I):
                postgres.learn()
                ours.learn()
            if st.differs:
                diff = compare.differences(want, got)
                if not diff:
                    diff = ["is on the list of differences, but does not differ"]
                else:
                    diff = [] if want.status == got.status else [f"transaction status: PostgreSQL {want.status}, here {got.status}"]
            else:
                diff = compare.differences(want, got, st.ordered)
            if diff:
                bad.append(f"{path.name}:{st.line} ({mode}) {st.sql}\n    " + "\n    ".join(diff))
                if want.status == got.status:
                    break
    for s in sides:
        s.run("ROLLBACK")
        s.run(f"DROP SCHEMA {schema} CASCADE")
    return bad


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_statements(sides, path):
    bad = run_file(sides, path, "diff_" + path.stem)
    assert not bad, f"{len(bad)} statements differ:\n" + "\n".join(bad)


def test_semantics(sides):
    """The lines where DuckDB answers differently from PostgreSQL."""
    bad = []
    for n, line in enumerate((SHARED / "clients" / "sql-semantics.txt").read_text().split("\n"), 1):
        m = re.match(r"(DIFF|FAIL|ok|PGERR)\s+(select .*?)( ERROR: .* \(SQLSTATE .*)?$", line)
        if not m:
            continue
        st = corpus.Statement(m[2], n)
        for mode in ("simple", "text", "binary"):
            want, got = (s.run(st.sql, mode) for s in sides)
            if diff := compare.differences(want, got, st.ordered):
                bad.append(f"{n} ({mode}) {st.sql}\n    " + "\n    ".join(diff))
                break
    assert not bad, f"{len(bad)} statements differ:\n" + "\n".join(bad)


# Values of the types that clients send as parameters: (type, OID, array's OID, texts).
VALUES = [
    ("int2", 21, 1005, ["0", "-32768", "32767"]),
    ("int4", 23, 1007, ["0", "-2147483648", "42"]),
    ("int8", 20, 1016, ["0", "9223372036854775807", "-1"]),
    ("float4", 700, 1021, ["1.5", "NaN", "-Infinity", "1e-45"]),
    ("float8", 701, 1022, ["0.1", "NaN", "Infinity", "-0", "1e300"]),
    ("numeric", 1700, 1231, ["0", "10000", "-1.5", "0.000001", "12345678901234567890.123", "99999999"]),
    ("bool", 16, 1000, ["t", "f"]),
    ("text", 25, 1009, ["", "a", "ü€", "it's", "a,b\"c\\\\d"]),
    ("varchar", 1043, 1015, ["", "abc"]),
    ("bpchar", 1042, 1014, ["abc", "ü"]),
    ("date", 1082, 1182, ["2026-01-02", "0001-01-01", "9999-12-31", "infinity"]),
    ("time", 1083, 1183, ["10:11:12.123456", "00:00:00"]),
    ("timestamp", 1114, 1115, ["2026-01-02 03:04:05.678", "1970-01-01 00:00:00", "-infinity"]),
    ("timestamptz", 1184, 1185, ["2026-07-01 12:00:00+00", "1900-01-01 00:00:00.000001+00"]),
    ("interval", 1186, 1187, ["1 year 2 mons 3 days 04:05:06.7", "-1 days"]),
    ("bytea", 17, 1001, ["\\x", "\\x00ff5c27"]),
    ("uuid", 2950, 2951, ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("json", 114, 199, ['{"a" : 1}', "null"]),
    ("jsonb", 3802, 3807, ['{"b": 1, "a": [1.50, null]}', '"x"']),
]


@pytest.mark.parametrize("name,oid,array,texts", VALUES, ids=[v[0] for v in VALUES])
def test_parameters(sides, name, oid, array, texts):
    """Parameters typed and untyped, in text and in binary, NULL, alone and in arrays."""
    postgres, ours = sides
    elements = ",".join('"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"' for t in texts)
    cases = [(name, oid, t.encode()) for t in texts] + [(name, oid, None), (name + "[]", array, b"{}"), (name + "[]", array, ("{" + elements + ",NULL}").encode())]
    bad = []

    def check(sql, *a):
        for mode in ("text", "binary"):
            want, got = (s.run(sql, mode, *a) for s in sides)
            if diff := compare.differences(want, got):
                bad.append(f"({mode}) {sql} {a}\n    " + "\n    ".join(diff))
                return

    for typ, typ_oid, text in cases:
        raw = postgres.run(f"SELECT $1::{typ}", "binary", [text]).replies[0].rows[0][0]
        for value, form in ((text, 0), (raw, 1)):
            check("SELECT $1", [value], [typ_oid], [form])
            check(f"SELECT $1::{typ}", [value], None, [form])
            check(f"SELECT $1::{typ}::text, $2", [value, b"x"], [0, 25], [form, 0])
            if name != "json":
                check(f"SELECT $1::{typ} = $1, $1 IS NULL", [value], None, [form])
            check(f"SELECT * FROM (VALUES ($1::{typ}), (NULL)) v(x)", [value], None, [form])
    for s in sides:  # the gateway tells how it stores numeric without precision
        assert s.run(f"CREATE TABLE public.p_{name} (id int PRIMARY KEY, v {name}, a {name}[])").replies[0].tag == "CREATE TABLE"
    if not any(t in ("infinity", "-infinity") for t in texts):
        for n, (typ, _, text) in enumerate(cases):
            raw = postgres.run(f"SELECT $1::{typ}", "binary", [text]).replies[0].rows[0][0]
            column = "a" if typ.endswith("[]") else "v"
            check(f"INSERT INTO public.p_{name} (id, {column}) VALUES ($1, $2) RETURNING *", [str(2 * n).encode(), text])
            check(f"INSERT INTO public.p_{name} (id, {column}) VALUES ($1, $2) RETURNING *", [(2 * n + 1).to_bytes(4, "big"), raw], None, [1, 1])
            if name not in ("json",):
                check(f"SELECT id FROM public.p_{name} WHERE {column} = $1 ORDER BY id", [raw], None, [1])
                check(f"SELECT id FROM public.p_{name} WHERE v = ANY ($1) ORDER BY id", [cases[-1][2]])
        check(f"SELECT * FROM public.p_{name} ORDER BY id")
    for sql, values in (("SELECT $1::int4 + 1", [b"x"]), (f"SELECT $1::{name}", [b"\xff"]), (f"SELECT $1::{name}[]", [b"{"])):
        check(sql, values)
    assert not bad, f"{len(bad)} statements differ:\n" + "\n".join(bad[:40])
