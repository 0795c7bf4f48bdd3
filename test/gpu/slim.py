#!/usr/bin/env python3
"""Keep of a report of `lull kernel` what was measured, and leave out the processes and the machine around it.

    test/gpu/slim.py LULL FROM.lull TO.lull

For recordings that become test data: a fifth of the size, and no paths.
"""
import json
import os
import subprocess
import sys
import tempfile

DEVICE = "capability n_sms memory_bytes l2_bytes clock_hz bandwidth_bytes".split()
SHAPE = ("grid_x grid_y grid_z block_x block_y block_z cluster_x cluster_y cluster_z registers static_shared_bytes "
         "dynamic_shared_bytes local_bytes").split()
PROFILED = "ordinal n_passes replay status sm_clock_hz dram_clock_hz cost_ns n_launches n_launches_least".split()


def quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def columns(row, names):
    return "".join(" %s=%d" % (n, row[n]) for n in names if row.get(n))


class Report:
    def __init__(self, lull, path, folder):
        self.lull, self.path, self.folder = lull, path, folder

    def table(self, name):
        out = os.path.join(self.folder, name)
        subprocess.run([self.lull, "export", "-f", "true", "-t", "jsonlines", "--tables", name, "-o", out, self.path],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def text_of(report):
    device = report.table("device")[0]
    profiled = sorted(report.table("profiled"), key=lambda p: p["start_ns"])
    ranges = {p["range"] for p in profiled if p["range"]}
    launched = {p["launch"] for p in profiled}
    lines = ["process pid=10 name=program", "device process=1 device_id=0 name=%s%s" % (quoted(device["name"]), columns(device, DEVICE))]
    labels, launches, begin = {0: 0, None: 0}, {}, {}
    for row in report.table("label"):
        if row["id"] in ranges:
            labels[row["id"]] = len(labels) - 1
            lines.append("label name=" + quoted(row["name"]))
    for row in report.table("launch"):
        if row["id"] in launched:
            launches[row["id"]] = len(launches) + 1
            lines.append("launch name=%s%s" % (quoted(row["name"]), columns(row, SHAPE)))
    for p in profiled:
        begin[p["profiled_id"]] = p["start_ns"] - profiled[0]["start_ns"] + 1000
        lines.append("profiled start=%dns dur=%dns profiled_id=%d process=1 device=1 launch=%d range=%d%s" % (
            begin[p["profiled_id"]], p["dur_ns"], p["profiled_id"], launches[p["launch"]], labels[p["range"]],
            columns(p, PROFILED)))
    for m in report.table("kmetric"):
        lines.append("kmetric start=%dns profiled_id=%d key=%s name=%s value=%r" % (
            begin[m["profiled_id"]], m["profiled_id"], m["key"], m["name"], m["value"]))
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    lull, path, to = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="lull-slim-") as folder:
        text = os.path.join(folder, "trace.txt")
        with open(text, "w", encoding="utf-8") as out:
            out.write(text_of(Report(lull, path, folder)))
        subprocess.run([lull, "text", text, to], check=True)


if __name__ == "__main__":
    main()
