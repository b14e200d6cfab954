"""The servers that are measured, each in a folder of its own."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess

import duckdb
import duckdb_extension_ducklake
import duckdb_extension_tpch
import psycopg

ROOT = pathlib.Path(__file__).resolve().parents[2]
PGBIN = pathlib.Path("/usr/lib/postgresql/15/bin")


class Gateway:
    """bin/skade-pg with its defaults and some flags."""

    name = "skade-pg"

    def __init__(self, folder, *flags):
        self.data = folder / "skade"
        self.log = open(folder / "skade.log", "wb")
        binary = os.environ.get("SKADE_PG_BIN", ROOT / "bin" / "skade-pg")
        self.version = subprocess.run([binary, "version"], capture_output=True, text=True).stdout.strip().splitlines()[0]
        self.http = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0", "--http", self.http[7:], "--allow-root", folder, *flags],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = re.search(r"postgres://\S+", self.process.stdout.readline()).group(0)
        self.db = psycopg.connect(self.url, autocommit=True)

    def files(self, table):
        """The data files of a table, as DuckDB's list literal."""
        found = sorted(p for p in self.data.glob(f"warehouse/public/{table}-*/data/*.parquet") if not p.name.endswith("-deletes.parquet"))
        assert found, f"no data files of {table}"
        return "[" + ", ".join(f"'{p}'" for p in found) + "]"

    def seq(self):
        return self.db.execute("SELECT current_commit_seq()").fetchone()[0]

    def peak(self):
        """Peak resident memory so far, in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) // 1024

    def stop(self):
        self.db.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Postgres:
    """PostgreSQL 15 with its defaults, but max_wal_size = 4GB, so that loading is not slowed by checkpoints."""

    name = "PostgreSQL"

    def __init__(self, folder):
        self.folder, self.user = folder / "postgres", []
        self.folder.mkdir()
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.user = ["runuser", "-u", "postgres", "--"]
        port = free_port()
        self.run(PGBIN / "initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        with open(self.folder / "data" / "postgresql.conf", "a") as f:
            f.write(f"port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_wal_size = '4GB'\n")
        self.run(PGBIN / "pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "start")
        self.url = f"postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable"
        self.db = psycopg.connect(self.url, autocommit=True)
        self.version = "PostgreSQL " + self.db.execute("SHOW server_version").fetchone()[0].split()[0]

    def run(self, *command):
        subprocess.run([*self.user, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/")

    def stop(self):
        self.db.close()
        self.run(PGBIN / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")


def extension(module):
    return next(pathlib.Path(module.__file__).parent.rglob("*.duckdb_extension"))


def duck():
    """Plain DuckDB with its defaults, in this process."""
    d = duckdb.connect()
    d.execute(f"LOAD '{extension(duckdb_extension_tpch)}'")
    return d


def ducklake(folder):
    """DuckLake with a DuckDB file as its catalog; the schema is dl."""
    lake = folder / "ducklake"
    lake.mkdir()
    d = duckdb.connect()
    d.execute(f"LOAD '{extension(duckdb_extension_ducklake)}'")
    d.execute(f"ATTACH 'ducklake:{lake}/meta.ducklake' AS dl (DATA_PATH '{lake}/data')")
    return d


def scratch(parent):
    folder = pathlib.Path(parent)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    return folder
