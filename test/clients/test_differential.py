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
    return bad


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_statements(sides, path):
    bad = run_file(sides, path, "diff_" + path.stem)
    assert not bad, f"{len(bad)} statements differ:\n" + "\n".join(bad)
