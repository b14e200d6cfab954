"""psql connects without errors and its backslash commands answer."""

import pytest

SHAPES = {
    "\\l": ["Name", "Owner", "Encoding", "Collate", "Ctype", "ICU Locale", "Locale Provider", "Access privileges"],
    "\\dn": ["Name", "Owner"],
    "\\dt": ["Schema", "Name", "Type", "Owner"],
    "\\dv": ["Schema", "Name", "Type", "Owner"],
    "\\d": ["Schema", "Name", "Type", "Owner"],
    "\\df": ["Schema", "Name", "Result data type", "Argument data types", "Type"],
    "\\du": ["Role name", "Attributes", "Member of"],
}


@pytest.fixture(scope="module")
def shop(gateway):
    gateway.psql("""
        CREATE SCHEMA psql_test;
        CREATE TABLE psql_test.orders (id bigint PRIMARY KEY, ts timestamptz, amount numeric(12,2) NOT NULL, note varchar(20) DEFAULT 'none', tags text[]);
        CREATE VIEW psql_test.v AS SELECT id, amount FROM psql_test.orders;
        COMMENT ON TABLE psql_test.orders IS 'orders table';
    """)
    return gateway


def table_of(gateway, command):
    import subprocess
    r = subprocess.run(["psql", "-X", "-A", "-P", "footer=off", "-c", "SET search_path = psql_test", "-c", command, gateway.url],
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 0 and r.stderr == "", r.stderr
    return [line.split("|") for line in r.stdout.splitlines()[1:]]


@pytest.mark.parametrize("command", SHAPES)
def test_backslash_commands(shop, command):
    lines = table_of(shop, command)
    header = next(i for i, l in enumerate(lines) if l == SHAPES[command])
    if command in ("\\dt", "\\d"):
        assert ["psql_test", "orders", "table", lines[header + 1][3]] in lines
    if command in ("\\dv", "\\d"):
        assert any(l[:3] == ["psql_test", "v", "view"] for l in lines)
    if command == "\\dn":
        assert any(l[0] == "psql_test" for l in lines)


def test_describe_table(shop):
    lines = table_of(shop, "\\d psql_test.orders")
    assert lines[1:] == [
        ["Column", "Type", "Collation", "Nullable", "Default"],
        ["id", "bigint", "", "not null", ""],
        ["ts", "timestamp with time zone", "", "", ""],
        ["amount", "numeric(12,2)", "", "not null", ""],
        ["note", "character varying(20)", "", "", "'none'::character varying"],
        ["tags", "text[]", "", "", ""],
        ["Indexes:"],
        ['    "orders_pkey" PRIMARY KEY, btree (id)'],
    ]


def test_describe_view(shop):
    lines = table_of(shop, "\\d psql_test.v")
    assert lines[2:] == [["id", "bigint", "", "", ""], ["amount", "numeric(12,2)", "", "", ""]]


def test_everything_psql_can_describe(shop):
    import subprocess
    commands = ["\\d+", "\\dt+", "\\dv+", "\\dn+", "\\l+", "\\du+", "\\d+ psql_test.orders", "\\dT", "\\di", "\\ds", "\\dm", "\\dp", "\\ddp", "\\dx", "\\db",
                "\\da", "\\do", "\\dC", "\\dD", "\\dL", "\\dF", "\\dy", "\\des", "\\dew", "\\dO", "\\dRp", "\\dRs", "\\dX", "\\dconfig", "\\drds", "\\sv psql_test.v"]
    bad = {}
    for c in commands:
        r = subprocess.run(["psql", "-X", "-c", c, shop.url], capture_output=True, text=True, timeout=60)
        if r.returncode != 0 or "ERROR" in r.stderr:
            bad[c] = r.stderr.strip()
    assert bad == {}
