"""A PostgreSQL 15 of one's own: the judge of the differential suite."""

import glob
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import time

import psycopg

BIN = pathlib.Path("/usr/lib/postgresql/15/bin")


class Postgres:
    """A cluster in a temporary folder, with the user, database and locale that the gateway reports. Root runs it as user postgres."""

    def __init__(self, user="skade", database="skade"):
        self.user, self.database = user, database
        self.folder = tempfile.mkdtemp(prefix="postgres-")
        self.as_user = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self.as_user = ["runuser", "-u", "postgres", "--"]

    def start(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        data = os.path.join(self.folder, "data")
        subprocess.run([*self.as_user, BIN / "initdb", "-D", data, "-U", self.user, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-A", "trust"],
                       check=True, capture_output=True, env=env, cwd=self.folder)
        self.process = subprocess.Popen(
            [*self.as_user, BIN / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", self.folder,
             "-c", "fsync=off", "-c", "jit=off", "-c", "autovacuum=off", "-c", "max_connections=20", "-c", "shared_buffers=32MB"],
            stdout=subprocess.DEVNULL, stderr=open(os.path.join(self.folder, "log"), "wb"), env=env, cwd=self.folder)
        self.url = f"postgres://{self.user}@127.0.0.1:{port}/{self.database}?sslmode=disable"
        end = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(self.url.replace(f"/{self.database}?", "/postgres?"), autocommit=True) as c:
                    c.execute(f'CREATE DATABASE "{self.database}"')
                return self
            except psycopg.OperationalError:
                assert self.process.poll() is None and time.monotonic() < end, open(os.path.join(self.folder, "log")).read()
                time.sleep(0.05)

    def stop(self):
        for pidfile in glob.glob(os.path.join(self.folder, "data", "postmaster.pid")):
            subprocess.run([*self.as_user, BIN / "pg_ctl", "-D", os.path.join(self.folder, "data"), "-m", "immediate", "stop"],
                           capture_output=True, cwd=self.folder)
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)
