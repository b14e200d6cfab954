"""A gateway of one's own for the outside judges, and psql to talk to it."""

import os
import pathlib
import re
import signal
import subprocess
import time

import psycopg
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKADE_PG", ROOT / "bin" / "skade-pg"))
SHARED = ROOT.parent / "shared"  # real data; a check that needs it fails without it


class Gateway:
    def __init__(self, folder, *flags):
        self.folder, self.flags, self.process, self.url = pathlib.Path(folder), flags, None, None

    def start(self):
        self.log = open(str(self.folder) + ".log", "ab")
        self.process = subprocess.Popen(
            [BIN, "serve", "--data", self.folder, "--listen", "127.0.0.1:0", *self.flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"postgres://\S+", line)
        assert found, f"no URL in the ready line {line!r}: {pathlib.Path(str(self.folder) + '.log').read_text()[-2000:]}"
        self.url = found.group(0)
        return self

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0, "SIGTERM did not end the server cleanly"
        self.process = None

    def kill(self):
        self.process.kill()
        self.process.wait(60)
        self.process = None

    def check(self):
        """skade-pg check by the folder: exit code and output."""
        r = subprocess.run([BIN, "check", "--data", self.folder], capture_output=True, text=True, timeout=300)
        return r.returncode, r.stdout + r.stderr

    def connect(self, **kw):
        return psycopg.connect(self.url, autocommit=True, **kw)

    def psql(self, sql, *args, ok=True):
        """What psql prints, unaligned, tuples only."""
        r = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *args, self.url],
                           input=sql, capture_output=True, text=True, timeout=600,
                           env={**os.environ, "PGOPTIONS": "", "PSQLRC": "/dev/null"})
        if ok:
            assert r.returncode == 0, r.stderr
            return r.stdout.rstrip("\n")
        return r


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    g = Gateway(tmp_path_factory.mktemp("gateway") / "data").start()
    yield g
    g.stop()
    code, out = g.check()
    assert code == 0, out


@pytest.fixture
def own_gateway(tmp_path):
    g = Gateway(tmp_path / "data").start()
    yield g
    g.stop()


@pytest.fixture
def db(gateway):
    with gateway.connect() as c:
        yield c


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.01)
