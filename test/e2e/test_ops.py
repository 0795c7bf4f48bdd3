#!/usr/bin/env python3
"""The report `ops` of an imported trace against the table that PyTorch printed for the same run.

Usage: test_ops.py LULL TRACE TABLE

Every row of the table has to be there, in its order, with its times, counts and bytes as far as the
table prints their digits.
"""
import csv
import io
import re
import subprocess
import sys

UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "%": 1}
COLUMNS = {
    "Self CPU %": "Self CPU (%)", "Self CPU": "Self CPU (ns)", "CPU total %": "CPU total (%)",
    "CPU total": "CPU total (ns)", "CPU time avg": "CPU time avg (ns)", "Self CUDA": "Self CUDA (ns)",
    "Self CUDA %": "Self CUDA (%)", "CUDA total": "CUDA total (ns)", "CUDA time avg": "CUDA time avg (ns)",
    "CPU Mem": "CPU Mem (bytes)", "Self CPU Mem": "Self CPU Mem (bytes)", "CUDA Mem": "CUDA Mem (bytes)",
    "Self CUDA Mem": "Self CUDA Mem (bytes)", "# of Calls": "# of Calls",
}


def printed(cell):
    """The value of a cell of PyTorch's table, and how far off it may be for its digits."""
    match = re.fullmatch(r"(-?[\d.]+)\s*([A-Za-z%]*)", cell)
    scale = UNITS[match[2]] if match[2] else 1
    digits = len(match[1].partition(".")[2])
    return float(match[1]) * scale, 0.51 * scale * 10.0**-digits


def table_rows(path):
    lines = [line for line in open(path) if line.strip() and not line.startswith("---")]
    header = [cell.strip() for cell in re.split(r"\s{2,}", lines[0].strip())]
    for line in lines[1:]:
        cells = [cell.strip() for cell in re.split(r"\s{2,}", line.strip())]
        if len(cells) == len(header):
            yield dict(zip(header, cells))


def main():
    lull, trace, table = sys.argv[1:4]
    out = subprocess.run([lull, "stats", "-q", "-r", "ops", "-f", "csv", trace], check=True,
                         capture_output=True, text=True).stdout
    ours = list(csv.DictReader(io.StringIO(out)))
    theirs = list(table_rows(table))
    bad = 0
    for place, row in enumerate(theirs):
        name = row["Name"].removesuffix("...")
        # Rows with equal totals have no order.
        near = [o for o in ours if o["Name"].startswith(name) and
                all(is_near(row[k], o[v]) for k, v in COLUMNS.items())]
        if not near:
            bad += 1
            print(f"row {place + 1}, {row['Name']}: not in the report")
            for o in ours:
                if o["Name"].startswith(name):
                    print("   ", {k: (row[k], o[v]) for k, v in COLUMNS.items() if not is_near(row[k], o[v])})
        elif abs(ours.index(near[0]) - place) > 2:
            bad += 1
            print(f"row {place + 1}, {row['Name']}: at place {ours.index(near[0]) + 1}")
    if not theirs:
        sys.exit(f"{table}: no rows")
    print(f"test_ops: {len(theirs) - bad} of {len(theirs)} rows of PyTorch's table are in ours")
    sys.exit(bad > 0)


def is_near(theirs, ours):
    value, slack = printed(theirs)
    # Ours has one digit behind the point of a percentage. A device annotation's end is rounded on its
    # way into the JSON: up to 3 ns a call.
    return abs(value - float(ours or 0)) <= slack + (0.06 if theirs.endswith("%") else 9)


if __name__ == "__main__":
    main()
