"""Reads the statements of the differential suite: own files (differential/*.sql) and the logs of real clients."""

import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).parent / "differential"


@dataclasses.dataclass
class Statement:
    sql: str
    line: int
    only: str = ""  # a mode, or empty for what suits the statement
    differs: str = ""  # why our answer must differ: the statement runs and only its transaction status is compared
    copy: bytes = b""
    params: list = dataclasses.field(default_factory=list)
    extended: bool = False

    @property
    def reads(self):
        sql = re.sub(r"'(?:[^']|'')*'", "''", self.sql)
        return bool(re.match(r"\s*\(*\s*(select|values|table|with|show)\b", sql, re.I)) and \
            not re.search(r"\b(insert|update|delete|nextval|set_config|pg_notify|create)\b", sql, re.I) and ";" not in sql

    @property
    def ordered(self):
        if not self.reads:  # the order of RETURNING's rows is that of storage
            return not re.search(r"\breturning\b|^copy \w+[^()]*(\([^()]*\))? to\b", self.sql, re.I)
        outer, inner = re.sub(r"'(?:[^']|'')*'", "''", self.sql), None
        while outer != inner:  # an ORDER BY in a subquery orders nothing
            inner, outer = outer, re.sub(r"\([^()]*\)", "", outer)
        return bool(re.search(r"\border\s+by\b", outer, re.I))

    def modes(self, nth=0):
        if self.only:
            return [self.only]
        if self.reads:
            return ["simple", "binary"]
        if ";" in self.sql or re.match(r"\s*(copy|begin|start|commit|rollback|end|abort)\b", self.sql, re.I):
            return ["simple"]
        return [("simple", "text", "binary")[nth % 3]]


def statements(path):
    """Statements end with a ; at the end of a line. "--! differs: why" and "--! mode: simple" speak of the next one. The rows of COPY FROM STDIN follow it up to \\. ."""
    out, sql, first, differs, only, lines = [], [], 0, "", "", iter(enumerate(path.read_text().split("\n"), 1))
    for n, line in lines:
        if line.startswith("--! differs:"):
            differs = line.split(":", 1)[1].strip()
        elif line.startswith("--! mode:"):
            only = line.split(":", 1)[1].strip()
        elif line.startswith("--") or not (line.strip() or sql):
            continue
        else:
            first = first if sql else n
            sql.append(line)
            if line.rstrip().endswith(";"):
                st = Statement("\n".join(sql).rstrip().removesuffix(";"), first, only, differs)
                if re.match(r"copy\b.*\bfrom\s+stdin", st.sql, re.I | re.S):
                    data = []
                    for _, row in lines:
                        if row == "\\.":
                            break
                        data.append(row + "\n")
                    st.copy = "".join(data).encode()
                out.append(st)
                sql, differs, only = [], "", ""
    assert not sql, f"{path}: statement of line {first} has no end"
    return out


LINE = re.compile(r"^<<(.*?)\|(\d+)\|(\d+)>> (LOG|DETAIL|ERROR|STATEMENT|HINT):  ?(.*)$", re.S)
PARAM = re.compile(r"\$\d+ = (NULL|'(?:[^']|'')*')")


def client_log(path):
    """Statements of one recorded client, in order; a "fetch" of a portal is left out, its execute reads all rows."""
    records = []
    for n, line in enumerate(path.read_text().split("\n"), 1):
        m = LINE.match(line)
        if m:
            records.append([n, m[4], m[5]])
        elif line.startswith("\t"):
            records[-1][2] += "\n" + line[1:]
    out = []
    for n, kind, text in records:
        if kind == "DETAIL" and text.startswith("parameters:") and out:
            if not out[-1].params:
                out[-1].params = [None if p == "NULL" else p[1:-1].replace("''", "'").encode() for p in PARAM.findall(text)]
            continue
        if kind != "LOG":
            continue
        m = re.match(r"(statement|execute (fetch from )?\S+): ?(.*)$", text, re.S)
        if not m or m[2]:
            continue
        out.append(Statement(m[3], n, extended=m[1] != "statement"))
    return out
