#!/usr/bin/env python3
"""State of devices for Prometheus (--metrics-port): names, types, units and labels of the DCGM exporter, on a simulated
NVML; and the dashboard that shows them.

Usage: test_metrics.py BUILD [NAME...]
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import runner
from runner import children, expect, limit, skip, until

BUILD = os.path.abspath(sys.argv[1])
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = {"LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "LULL_NVML_PATH": os.path.join(BUILD, "sim/libnvidia-ml.so.1")}

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?Inf|NaN")


def labels_of(text, line):
    """{name: value}; every character of it must belong to a label."""
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        expect("labels", m and m[1] not in found, line)
        found[m[1]] = re.sub(r'\\(["\\n])', lambda e: "\n" if e[1] == "n" else e[1], m[2])
        at = m.end()
        expect("no comma at the end", m[3] == "" or at < len(text), line)
    return found


def parse(text):
    """The text format 0.0.4, strictly: {name: (type, [(labels, value)])}."""
    families, name, helped = {}, None, None
    expect("the last line ends", text.endswith("\n"))
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if comment and comment[1] == "HELP":
            expect("one HELP for each family", comment[2] not in families and helped is None, line)
            helped = comment[2]
        elif comment:
            name = comment[2]
            expect("TYPE follows its HELP", helped == name and name not in families, line)
            expect("a type", comment[3] in ("counter", "gauge", "histogram"), line)
            families[name], helped = (comment[3], []), None
        else:
            m = SAMPLE.fullmatch(line)
            expect("a sample", m and NUMBER.fullmatch(m[3]) and helped is None, line)
            base = re.sub("_(bucket|sum|count)$", "", m[1]) if families[name][0] == "histogram" else m[1]
            expect("it stands with its family", base == name, line)
            families[name][1].append((m[1], labels_of(m[2] or "", line), float(m[3])))
    for name, (_, samples) in families.items():
        keys = [(n, tuple(sorted(labels.items()))) for n, labels, _ in samples]
        expect("each series once", len(set(keys)) == len(keys), name)
        expect("no device without a value", keys or not name.startswith("DCGM_"), name)
    return {name: (kind, [(labels, value) for _, labels, value in samples]) for name, (kind, samples) in families.items()}


def fetch(url):
    with urllib.request.urlopen(url, timeout=limit(120)) as f:
        expect("its type", f.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", f.headers)
        return f.read().decode()


@contextlib.contextmanager
def recording(*words, **knobs):
    """A recorder that tells metrics: their address."""
    p = runner.start([LULL, "profile", "-s", "none", "--python-sampling=false", "--metrics-port=0", "-o", "m", *words, LOOP,
                      "--steps=1000000"], env={**os.environ, **SIM, **knobs}, stderr=subprocess.PIPE,
                     stdout=subprocess.DEVNULL, text=True)
    yield runner.url_of_metrics(p)
    for child in children(p.pid):
        if open(f"/proc/{child}/comm", encoding="ascii").read().strip() != "lull-gpu":
            os.kill(child, signal.SIGTERM)
    runner.finish(p)


def wait_for(url, ready):
    """The text of the metrics once `ready` of them holds."""
    last = {}

    def is_ready():
        last["text"] = fetch(url)
        return ready(parse(last["text"]))

    until(is_ready, "the metrics come")
    return last["text"]


def told_until(ready, *words, **knobs):
    """Record until `ready` of the metrics holds; the text at that moment."""
    with recording(*words, **knobs) as url:
        return wait_for(url, ready)


def list_of_names():
    """DCGM_FI_<name>: (type, scale) of dcgm.def."""
    with open(os.path.join(TOP, "src/record/live/dcgm.def"), encoding="ascii") as f:
        return {"DCGM_FI_" + m[1]: m[2] for m in re.finditer(r"^DCGM\((\w+), (\w+), ", f.read(), re.M)}


# What the simulated device says, in the units of the exporter: W, MHz, MiB, mJ, bytes a second, shares from 0 to 1.
SAID = {
    "DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_MEM_CLOCK": 3201, "DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_MEMORY_TEMP": 48,
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700, "DCGM_FI_DEV_POWER_MGMT_LIMIT": 650, "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 12, "DCGM_FI_DEV_FB_USED": 512, "DCGM_FI_DEV_FB_RESERVED": 512,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 4,
    # GPM's simulated counters have their number as their value, in percent, or MiB a second.
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.01, "DCGM_FI_PROF_SM_ACTIVE": 0.02, "DCGM_FI_PROF_SM_OCCUPANCY": 0.03,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.05, "DCGM_FI_PROF_DRAM_ACTIVE": 0.10, "DCGM_FI_PROF_PIPE_FP64_ACTIVE": 0.11,
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": 0.12, "DCGM_FI_PROF_PIPE_FP16_ACTIVE": 0.13,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 20 << 20, "DCGM_FI_PROF_PCIE_RX_BYTES": 21 << 20,
}


def has_counters(told):
    return "DCGM_FI_PROF_SM_ACTIVE" in told


def devices_have_the_names_of_the_exporter():
    told = parse(told_until(has_counters, LULL_SIM_NVML_REASONS="4", LULL_SIM_NVML_DEVICES="2"))
    for name, (kind, samples) in told.items():
        if not name.startswith("DCGM_"):
            continue
        expect("it is in the list, with its type", list_of_names().get(name) == kind, (name, kind))
        expect("both devices", [labels["gpu"] for labels, _ in samples] == ["0", "1"], (name, samples))
        for labels, _ in samples:
            expect("labels", sorted(labels) == sorted(["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname",
                                                       "DCGM_FI_DRIVER_VERSION"]), labels)
    labels = told["DCGM_FI_DEV_GPU_TEMP"][1][1][0]
    expect("what they say", labels["device"] == "nvidia1" and labels["pci_bus_id"] == "00000000:04:00.0" and
           labels["Hostname"] == socket.gethostname() and "Simulated" in labels["modelName"] and
           labels["DCGM_FI_DRIVER_VERSION"] == "580.95.05", labels)
    expect("the UUID as nvidia-smi prints it", re.fullmatch(r"GPU-[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", labels["UUID"]), labels)
    for name, value in SAID.items():
        expect(name, name in told and abs(told[name][1][0][1] - value) < 1e-9 * max(value, 1), (told.get(name), value))
    expect("power takes turns", told["DCGM_FI_DEV_POWER_USAGE"][1][0][1] in (200, 300), told["DCGM_FI_DEV_POWER_USAGE"])
    expect("energy", told["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"][0] == "counter" and
           told["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"][1][0][1] > 5e6, told["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"])
    memory = [told[f"DCGM_FI_DEV_FB_{part}"][1][0][1] for part in ("TOTAL", "FREE", "USED", "RESERVED")]
    expect("memory adds up", memory[0] == sum(memory[1:]), memory)
    expect("what it has none of is left out", "DCGM_FI_PROF_NVLINK_TX_BYTES" not in told)
    expect("the program is there, too", told["lull_step_seconds"][0] == "histogram")


def promtool_reads_them():
    """Prometheus' own opinion. It also dislikes the exporter's names (capitals, no _total), and that is all it may say."""
    if not shutil.which("promtool"):
        skip("no promtool here (Debian's package prometheus); the parser of this file reads the same text")
    done = runner.run(["promtool", "check", "metrics"], input=told_until(has_counters))
    said = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("DCGM_")]
    expect("promtool", done.returncode in (0, 3) and not said, (done.returncode, said))


class Prometheus:
    """Debian's Prometheus, which scrapes one address each second."""

    CONFIG = "scrape_configs: [{job_name: lull, scrape_interval: 1s, static_configs: [{targets: ['%s']}]}]\n"

    def __init__(self, target):
        if not shutil.which("prometheus"):
            skip("no prometheus here (Debian's package of that name, 95 MB)")
        with open("prometheus.yml", "w", encoding="ascii") as f:
            f.write(self.CONFIG % target)
        self.address = f"127.0.0.1:{runner.free_port()}"
        with open("prometheus.log", "wb") as log:
            runner.start(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                          f"--web.listen-address={self.address}"], stdout=log, stderr=log)

    def ask(self, what, **params):
        """The data of an answer; None while the server does not answer yet."""
        url = f"http://{self.address}/api/v1/{what}?" + urllib.parse.urlencode(params)
        try:
            with urllib.request.urlopen(url, timeout=limit()) as f:
                return json.load(f)["data"]
        except urllib.error.HTTPError as why:
            if why.code == 503:  # it listens before its storage is open
                return None
            raise AssertionError(f"{what} {params}: {why.read().decode()}") from None
        except OSError:
            return None

    def query(self, expression):
        """Series of the present: [(labels, value)]."""
        data = self.ask("query", query=expression)
        return [(series["metric"], float(series["value"][1])) for series in data["result"]] if data else []


def plain(labels):
    """Labels without those that Prometheus adds."""
    return {name: value for name, value in labels.items() if name not in ("instance", "job", "__name__")}


def expect_all_series(server, text):
    """Prometheus has each of them, with its labels and its type."""
    types = server.ask("metadata")
    for name, (kind, samples) in parse(text).items():
        expect("its type", [m["type"] for m in types[name]] == [kind], (name, types.get(name)))
        suffix = "_count" if kind == "histogram" else ""
        stored = [plain(labels) for labels, _ in server.query(name + suffix)]
        expect("all series", all(labels in stored for labels, _ in samples if "le" not in labels), (name, samples, stored))


def expect_board_has_data(server):
    """Every expression of the dashboard is accepted. On the simulated device, which has no NVLink, the others give data."""
    variables = {"$instance": ".*", "$Hostname": ".*", "$gpu": ".*", "$__rate_interval": "5s", "$__range": "5s"}
    for target in (t for panel in board()["panels"] for t in panel.get("targets", ())):
        expression = re.sub(r"\$\w+", lambda m: variables[m[0]], target["expr"])
        if "NVLINK" in expression:
            expect("accepted", server.ask("query", query=expression)["result"] == [], expression)
        else:
            until(lambda: server.query(expression), f"{expression} has data")


def prometheus_stores_every_series_and_the_dashboard_shows_them():
    with recording() as url:
        server = Prometheus(url.split("/")[2])
        text = wait_for(url, has_counters)
        until(lambda: server.query("DCGM_FI_PROF_SM_ACTIVE"), "it scrapes")
        expect("it is up", [value for _, value in server.query("up")] == [1], server.query("up"))
        expect_all_series(server, text)
        expect("a value", server.query("DCGM_FI_DEV_ENFORCED_POWER_LIMIT")[0][1] == 700)
        before = server.query("lull_kernels_total")[0][1]
        until(lambda: server.query("lull_kernels_total")[0][1] > before, "the next scrape has more kernels")
        expect_board_has_data(server)


def board():
    with open(os.path.join(TOP, "examples/grafana.json"), encoding="ascii") as f:
        return json.load(f)


def without_gpm_and_power_the_rest_remains():
    told = parse(told_until(lambda told: "DCGM_FI_PROF_PCIE_RX_BYTES" in told, LULL_SIM_NVML_LACKS="gpm,power,memory-v2"))
    expect("NVML's own view of PCIe", told["DCGM_FI_PROF_PCIE_RX_BYTES"][1][0][1] == 2e6, told["DCGM_FI_PROF_PCIE_RX_BYTES"])
    for name in ("DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION", "PROF_SM_ACTIVE", "DEV_FB_RESERVED"):
        expect(f"no {name}", "DCGM_FI_" + name not in told, name)
    # Drivers that cannot tell reserved memory count it as used.
    expect("memory", told["DCGM_FI_DEV_FB_USED"][1][0][1] == 1024, told["DCGM_FI_DEV_FB_USED"])


def without_devices_there_are_none():
    told = parse(told_until(lambda told: told["lull_kernels_total"][1][0][1] > 1000, "--gpu-metrics=none"))
    expect("none", not [name for name in told if name.startswith("DCGM_")], list(told))


def the_report_has_only_what_it_had():
    """Values that are only told do not make reports larger."""
    told_until(has_counters)
    rows = json.loads(runner.run([LULL, "query", "m.lull", "select distinct name from metric", "--format", "json"],
                                 check=True).stdout)
    names = {row["name"] for row in rows}
    expect("recorded", {"power", "power_limit", "sm_active"} <= names and not names & {"energy", "memory_free"}, names)


def the_dashboard_shows_what_is_told():
    shown = board()
    told = parse(told_until(has_counters))
    known = set(list_of_names()) | set(told) | {"lull_step_seconds_bucket"}
    used = set()
    expect("numbers of panels", len({p["id"] for p in shown["panels"]}) == len(shown["panels"]))
    for panel in shown["panels"]:
        if panel["type"] == "row":
            continue
        expect("a title and a unit", panel["title"] and panel["fieldConfig"]["defaults"]["unit"], panel)
        expect("data", panel["targets"], panel)
        for target in panel["targets"]:
            names = set(re.findall(r"\b(?:DCGM_\w+|lull_\w+)", target["expr"]))
            expect("names of metrics", names and names <= known, names - known)
            expect("brackets", all(target["expr"].count(a) == target["expr"].count(b) for a, b in ("()", "{}", "[]")), target)
            used |= names
    expect("variables", {v["name"] for v in shown["templating"]["list"]} == {"datasource", "instance", "Hostname", "gpu"})
    expect("both kinds", {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "lull_device_idle_ratio"} <= used, used)
    places = [p["gridPos"] for p in shown["panels"]]
    for i, a in enumerate(places):
        for b in places[:i]:
            expect("panels lie apart", a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or a["y"] + a["h"] <= b["y"] or
                   b["y"] + b["h"] <= a["y"], (a, b))


TESTS = (
    devices_have_the_names_of_the_exporter,
    promtool_reads_them,
    prometheus_stores_every_series_and_the_dashboard_shows_them,
    without_gpm_and_power_the_rest_remains,
    without_devices_there_are_none,
    the_report_has_only_what_it_had,
    the_dashboard_shows_what_is_told,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
