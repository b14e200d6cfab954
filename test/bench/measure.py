"""Interleaved measurements: A B A B, answers compared in every round, medians."""

import dataclasses
import math
import statistics
import time
from decimal import Decimal


@dataclasses.dataclass
class Row:
    """One line of the table. ours and theirs are texts; ratio is how many times faster skade-pg is than the peer."""

    id: str
    work: str
    peer: str
    ours: str
    theirs: str
    ratio: float | None
    target: str
    met: bool | None
    limit: str


def timed(run):
    begin = time.perf_counter()
    answer = run()
    return time.perf_counter() - begin, answer


def race(ours, theirs, rounds, same=None):
    """Medians of two functions that return (seconds, answer). Who begins alternates; a difference in the answers ends the benchmark."""
    a, b = [], []
    for i in range(rounds):
        if i % 2:
            tb, theirs_answer = theirs()
            ta, ours_answer = ours()
        else:
            ta, ours_answer = ours()
            tb, theirs_answer = theirs()
        a.append(ta)
        b.append(tb)
        (same or equal)(ours_answer, theirs_answer)
    return statistics.median(a), statistics.median(b)


def equal(a, b):
    assert canonical(a) == canonical(b), f"the answers differ:\n{str(a)[:600]}\n{str(b)[:600]}"


def canonical(v):
    """Rows as they compare: numbers to 9 digits (DuckDB averages decimals as doubles), texts as they are."""
    if isinstance(v, (list, tuple)):
        return [canonical(x) for x in v]
    if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool):
        return float(f"{float(v):.9g}")
    return v


def geomean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def ms(seconds):
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def rate(n, unit):
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g}{suffix} {unit}"
    return f"{n:.3g} {unit}"
