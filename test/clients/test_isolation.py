"""PostgreSQL's isolation cases on PostgreSQL 15 and on the gateway: who waits, who fails, what is read, step by step."""

import pathlib

import pytest

from conftest import Gateway
from isolation_spec import Run, Spec
from postgres import Postgres

FILES = sorted((pathlib.Path(__file__).parent / "isolation").glob("*.spec"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    judge, gateway = Postgres().start(), Gateway(tmp_path_factory.mktemp("isolation") / "data").start()
    try:
        yield judge, gateway
    finally:
        judge.stop()
        gateway.stop()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_isolation(servers, path):
    spec, bad = Spec(path), []
    assert spec.permutations
    for order, why in spec.permutations:
        want, got = (Run(s.url, spec, order).events for s in servers)
        if why and want == got:
            bad.append(f"permutation {' '.join(order)} is on the list of differences, but does not differ")
        elif not why and want != got:
            bad.append(f"permutation {' '.join(order)}\n  PostgreSQL:\n    " + "\n    ".join(want) + "\n  here:\n    " + "\n    ".join(got))
    assert not bad, f"{len(bad)} permutations differ:\n" + "\n".join(bad)
