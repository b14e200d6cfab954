"""Runs the benchmarks, prints one table and writes docs/benchmarks.md."""

import argparse
import dataclasses
import datetime
import os
import pathlib
import platform
import re
import shutil
import signal
import sys
import tempfile
import time

import duckdb

import analytics
import commits
import fold
import joins
import wire
from peers import ROOT, Gateway, Postgres, duck, scratch

WORKS = {"P1": analytics.p1, "P2": wire.p2, "P3": joins.p3, "P4": analytics.p4, "P5": fold.p5, "P6": analytics.p6, "P7": wire.p7, "P8": wire.p8, "P9": commits.p9,
         "P10": analytics.p10, "P11": commits.p11, "P14": commits.p14}


@dataclasses.dataclass
class Scale:
    name: str
    rows: int  # P2, P7, P10
    lookup_rows: int  # P1, P3
    table_rows: int  # P4
    collapse_rows: int  # P5
    flights: int  # P6: rows of the flights file
    tpch: float  # P6: scale factor
    seconds: int  # of one pgbench or go test run
    rounds: int  # A B pairs


FULL = Scale("full", 1_000_000, 10_000_000, 10_000_000, 10_000_000, 3_000_000, 1, 3, 3)
QUICK = Scale("quick", 300_000, 1_000_000, 1_000_000, 4_000_000, 1_000_000, 0.1, 1, 3)


class Workshop:
    """What all measurements share."""

    def __init__(self, folder, scale, flights):
        self.folder, self.scale, self.flights = folder, scale, flights
        self.foreign = folder / "foreign"  # tables of other writers
        self.made = set()
        self.duck = duck()
        self.postgres = self.skade = None

    def open(self):
        self.postgres = Postgres(self.folder)
        self.skade = Gateway(self.folder, "--max-connections", "1200")  # P14

    def has(self, name):
        """True from the second call on: what is made once."""
        known = name in self.made
        self.made.add(name)
        return known

    def close(self):
        for server in (self.skade, self.postgres):
            if server:
                server.stop()


def machine(w):
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 1024 / 1024
    return (f"{os.cpu_count()} cores ({model.group(1) if model else platform.machine()}), {memory:.0f} GiB, Linux {platform.release()}; "
            f"{w.skade.version}; {w.postgres.version}; DuckDB {duckdb.__version__}, DuckLake of the same release; load average at the start {os.getloadavg()[0]:.1f}")


def busy():
    load = os.getloadavg()[0]
    if load < os.cpu_count() / 2:
        return ""
    return f" The machine was busy with other work during this run (load average {load:.0f} before it): the figures are provisional, times more than ratios."


def table(rows):
    lines = ["| # | work | against | skade-pg | peer | ratio | target | met | what limits it |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f}×"
        met = {True: "yes", False: "no", None: ""}[r.met]
        lines.append(f"| {r.id} | {r.work} | {r.peer} | {r.ours} | {r.theirs} | {ratio} | {r.target} | {met} | {r.limit} |".replace("|  |", "| |"))
    return "\n".join(lines)


TEXT = """# Benchmarks

Written by `make bench` ({command}) on {day}, as the figures are.

Machine: {machine}.{busy}

Ratios are how many times as fast as the peer skade-pg is (above 1 is faster), from interleaved runs (A B A B …, {rounds} pairs) and
their medians. What is compared in every round: P7 a checksum of all rows, P6 and `\d` the whole answer, P3, P4, P5 and P10 aggregates, P2 a hundred random keys
through another client (pgbench shows no answers). The three pgbench rows of P8 are compared once, with one expression; P1 has no peer and checks every answer: the row of the key, with the values it was written with, or none.
All servers run with their defaults on the same machine as their clients, but PostgreSQL with max_wal_size = 4GB, and skade-pg with --max-connections 1200.
"What limits it" rests on CPU profiles for P1, P2, P8's SELECT rows, P4 and P10; entries marked (not profiled) are a guess.
Scale "{scale}": {rows:,} rows in P2, P7 and P10, {lookup:,} in P1 and P3, {table_rows:,} in P4 (a tenth of them changed), {collapse_rows:,} change rows in P5, {flights:,} of the flights file, TPC-H scale factor {tpch:g}.
The whole run took {took:.0f} s; the server's peak resident memory was {peak} MiB.

{table}

Not measured here: P12. `go test -bench . ./lookup ./changelog
./liveset ./engine/duck` measures parts of them in process. That a large result streams in bounded memory (P13) is a test, `TestLargeResultStreams`.
"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="a smaller scale, under four minutes on two cores")
    p.add_argument("--only", default=",".join(WORKS), help="rows to run, e.g. P2,P8; docs/benchmarks.md is written when all of them run")
    p.add_argument("--flights", default=ROOT.parent / "shared" / "data" / "flights-3m.parquet", help="the flights file (vega-datasets' flights-3m.parquet)")
    p.add_argument("--keep", action="store_true", help="keep the servers' folders")
    args = p.parse_args()
    scale, wanted = QUICK if args.quick else FULL, args.only.split(",")
    if "P6" in wanted and not pathlib.Path(args.flights).exists():
        sys.exit(f"bench: {args.flights} is missing: give --flights vega-datasets' flights-3m.parquet")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended by a signal"))  # so that the servers end too
    folder = scratch(tempfile.mkdtemp(prefix="skade-bench-"))
    begin, rows = time.monotonic(), []
    w = Workshop(folder, scale, args.flights)
    try:
        w.open()
        line, strained = machine(w), busy()
        print(line)
        for name in wanted:
            start = time.monotonic()
            for r in WORKS[name](w):
                rows.append(r)
                print(f"{r.id:4} {r.work:75} {r.peer:40} {r.ours:>14} {r.theirs:>14} {f'{r.ratio:.2f}x' if r.ratio else '':>8}  {r.target:12} {'' if r.met is None else 'yes' if r.met else 'no'}")
            print(f"     {name} took {time.monotonic() - start:.0f} s")
        peak = w.skade.peak()
    finally:
        w.close()
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    if set(wanted) == set(WORKS):
        command = "test/bench/run" + (" --quick" if args.quick else "")
        (ROOT / "docs" / "benchmarks.md").write_text(TEXT.format(
            command=command, day=datetime.date.today().isoformat(), machine=line, busy=strained, rounds=scale.rounds, scale=scale.name, rows=scale.rows, lookup=scale.lookup_rows,
            table_rows=scale.table_rows, collapse_rows=scale.collapse_rows, tpch=scale.tpch, flights=scale.flights, took=time.monotonic() - begin, peak=peak, table=table(rows)))


main()
