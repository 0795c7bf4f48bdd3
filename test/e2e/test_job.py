#!/usr/bin/env python3
"""Jobs of many ranks, and long ones: launchers, names of reports, part files, the flight recorder, metrics.

mpirun is the real one where it is installed; other launchers are what they document: variables.
Usage: test_job.py BUILD [NAME...]
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

import runner
from runner import children, expect, limit, skip, until, until_file

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = {"LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
SESSION = f"job{os.getpid()}"

# What a launcher would have set must not come from whoever runs the tests.
CLEAN = {k: v for k, v in os.environ.items()
         if not re.match(r"(OMPI(?!_MCA)|PMI|PMIX|SLURM|RAY|TORCHELASTIC|MPI|PBS|LSB)_|(LOCAL_)?RANK$|WORLD_SIZE|MASTER_|JOB_", k)}


def run(*words, env=None, status=0):
    """Run a command; what it wrote to standard error."""
    done = runner.run(words, env={**CLEAN, **(env or {})})
    if status is not None:
        expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done.stderr


def profile(*words, env=None, status=0):
    return run(LULL, "profile", "-s", "none", "--python-sampling=false", *words, env=env, status=status)


def ask(report, sql):
    return json.loads(runner.run([LULL, "query", report, sql, "--format", "json"], check=True).stdout)


def meta(report):
    return {row["key"]: row["value"] for row in ask(report, "select key, value from meta")}


def reports():
    return sorted(name for name in os.listdir(".") if name.endswith(".lull"))


def nothing_is_left():
    left = [name for name in os.listdir(".") if ".part" in name]
    expect("nothing unfinished is left", not left, left)


# ---- launchers ----

def environments_of_launchers_are_understood():
    cases = [
        ("torchrun", dict(RANK="11", LOCAL_RANK="3", WORLD_SIZE="16", MASTER_ADDR="n0", MASTER_PORT="29500",
                          TORCHELASTIC_RUN_ID="none"), (11, 3, 16, "n0:29500")),
        ("torchrun", dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", TORCHELASTIC_RUN_ID="exp7"), (0, 0, 2, "exp7")),
        # Ray Train: the names of torch.distributed, and the job of Ray.
        ("torchrun", dict(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2", RAY_JOB_ID="03000000"), (1, 1, 2, "03000000")),
        ("openmpi", dict(OMPI_COMM_WORLD_RANK="5", OMPI_COMM_WORLD_LOCAL_RANK="1", OMPI_COMM_WORLD_SIZE="8",
                         PMIX_RANK="5", PMIX_NAMESPACE="prterun-n0-77@1"), (5, 1, 8, "prterun-n0-77@1")),
        ("hydra", dict(PMI_RANK="2", MPI_LOCALRANKID="0", PMI_SIZE="4"), (2, 0, 4, None)),
        ("srun", dict(SLURM_PROCID="9", SLURM_LOCALID="1", SLURM_STEP_NUM_TASKS="32", SLURM_NTASKS="32",
                      SLURM_JOB_ID="4711", SLURM_STEP_ID="0"), (9, 1, 32, "4711")),
        ("pmix", dict(PMIX_RANK="6", PMIX_NAMESPACE="ns.1"), (6, None, None, "ns.1")),
        ("kubernetes", dict(JOB_COMPLETION_INDEX="4"), (4, None, None, None)),
        # torchrun's workers under srun: the nearer launcher counts.
        ("torchrun", dict(SLURM_PROCID="1", SLURM_LOCALID="0", SLURM_STEP_NUM_TASKS="2", SLURM_JOB_ID="5",
                          RANK="9", LOCAL_RANK="1", WORLD_SIZE="16"), (9, 1, 16, "5")),
        # A batch script without srun, and variables with plain names: no ranks.
        (None, dict(SLURM_PROCID="0", SLURM_JOB_ID="5"), (None, None, None, "5")),
        (None, dict(RANK="gold"), (None, None, None, None)),
        (None, dict(RANK="3"), (None, None, None, None)),
    ]
    for i, (launcher, env, (rank, local, size, job)) in enumerate(cases):
        profile("-t", "none", "-o", f"case{i}", "true", env=env)
        name = f"case{i}.lull" if rank is None else f"case{i}-rank{rank}.lull"
        found = meta(name)
        for key, value in (("rank", rank), ("local_rank", local), ("world_size", size), ("job", job),
                           ("launcher", launcher)):
            expect(f"{key} of {env}", found.get(key) == (None if value is None else str(value)), found.get(key))
        expect("host", found.get("host") == socket.gethostname(), found.get("host"))
        if rank is not None:
            row = ask(name, "select has_rank, rank, local_rank, world_size from process")[0]
            expect(f"process of {env}", list(row.values()) == [1, rank, -1 if local is None else local, size or 0], row)


def names_do_not_collide():
    rank3 = dict(RANK="3", LOCAL_RANK="3", WORLD_SIZE="4", NAME="x")
    for pattern, name in (("plain", "plain-rank3.lull"), ("end.lull", "end-rank3.lull"),
                          ("n%n", "n1-rank3.lull"), ("own-%q{NAME}", "own-x.lull"),
                          ("host-%h", f"host-{socket.gethostname()}-rank3.lull")):
        profile("-t", "none", "-o", pattern, "true", env=rank3)
        expect(f"name of {pattern}", os.path.exists(name), reports())
    profile("-t", "none", "-o", "plain", "true", env=dict(rank3, TORCHELASTIC_RESTART_COUNT="2"))
    expect("name after a restart", os.path.exists("plain-rank3-restart2.lull"), reports())
    profile("-t", "none", "true", env=rank3)
    expect("name without -o", os.path.exists("report1-rank3.lull"), reports())


def ranks_that_are_not_wanted_run_untouched():
    show = ["sh", "-c", "echo ${LD_PRELOAD:-none} ${LULL_SESSION:-none} $MORE >seen$RANK"]
    for rank in range(6):
        profile("--ranks=0,2-3", "-t", "none", "-o", "r", "-e", "MORE=more", *show,
                env=dict(RANK=str(rank), WORLD_SIZE="6"))
        seen = open(f"seen{rank}").read().split()
        is_wanted = rank in (0, 2, 3)
        expect(f"rank {rank}", os.path.exists(f"r-rank{rank}.lull") == is_wanted, reports())
        expect(f"environment of rank {rank}", (seen[0] != "none") == is_wanted and seen[-1] == "more", seen)
    # The status is the program's, and a program that is not there is said as ever.
    profile("--ranks=1", "sh", "-c", "exit 9", env=dict(RANK="0", WORLD_SIZE="2"), status=9)
    said = profile("--ranks=1", "./not-there", env=dict(RANK="0", WORLD_SIZE="2"), status=127)
    expect("a missing program", "'./not-there' not found" in said, said)


def stage_heads_are_the_first_of_each_stage():
    for rank in range(8):
        profile("--ranks=stage-heads", "-t", "none", "-o", "s", "sh", "-c", ":", "x",
                "--pipeline-model-parallel-size", "4", env=dict(RANK=str(rank), WORLD_SIZE="8"))
    expect("heads", reports() == [f"s-rank{n}.lull" for n in (0, 2, 4, 6)], reports())
    profile("--ranks=stage-heads:2", "-t", "none", "-o", "two", "true", env=dict(RANK="4", WORLD_SIZE="8"))
    expect("two stages", os.path.exists("two-rank4.lull"), reports())
    said = profile("--ranks=stage-heads", "true", status=2)
    expect("unknown number of stages", "stage-heads:4" in said and said.count("\n") == 1, said)
    for bad in ("x", "3-1", "1,,2", "1;2", "-1"):
        said = profile(f"--ranks={bad}", "true", status=2)
        expect(f"--ranks={bad}", "is not a list" in said and said.count("\n") == 1, said)


# How each MPI is started, and what its launcher is called.
FAMILIES = {"openmpi": (["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"], "openmpi"),
            "mpich": (["mpirun.mpich"], "hydra")}


def mpirun_of(family):
    words, _ = FAMILIES[family]
    if not shutil.which(words[0]):
        skip(f"no {words[0]} here")
    return words


def a_launcher_around_lull(family):
    run(*mpirun_of(family), "-n", "3", LULL, "profile", "-q", "-s", "none", "-t", "none", "--ranks=0,2", "-o", family, "true")
    expect(family, reports() == [f"{family}-rank0.lull", f"{family}-rank2.lull"], reports())
    facts = [meta(f"{family}-rank{n}.lull") for n in (0, 2)]
    expect(f"facts of {family}", [f["rank"] for f in facts] == ["0", "2"] and
           all(f["world_size"] == "3" and f["launcher"] == FAMILIES[family][1] for f in facts), facts)
    if family == "openmpi":
        expect("one job", facts[0]["job"] == facts[1]["job"], facts)


def lull_around_a_launcher(family):
    profile("-t", "nvtx", "--ranks=1-2", "-o", family, *mpirun_of(family), "-n", "3", "sh", "-c", "true; :")
    rows = ask(f"{family}.lull", "select distinct rank, world_size from process where has_rank and has_agent order by rank")
    expect(f"ranks of {family}", [(r["rank"], r["world_size"]) for r in rows] == [(1, 3), (2, 3)], rows)
    expect("meta", meta(f"{family}.lull").get("ranks") == "1-2", meta(f"{family}.lull"))
    expect("job", family == "mpich" or meta(f"{family}.lull").get("job"), meta(f"{family}.lull"))


def workers_that_learn_their_rank_late_have_it():
    """As Ray and torch.multiprocessing do it: the variable is set inside the process, before CUDA begins."""
    script = ("import os, ctypes\nos.environ.update(RANK='7', LOCAL_RANK='1', WORLD_SIZE='9')\n"
              "assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\n")
    profile("-t", "cuda", "-o", "late", sys.executable, "-c", script, env=SIM)
    found = meta("late.lull")
    expect("late rank", (found.get("rank"), found.get("world_size")) == ("7", "9"), found)


# ---- part files ----

def unfinished_reports_lie_where_they_should():
    os.mkdir("local")
    os.mkdir("shared")
    profile("-t", "nvtx", "--part-dir=local", "-o", "shared/run", "sh", "-c", "ls local shared >seen")
    seen = open("seen").read().split()
    expect("while it runs", any(name.endswith("run.lull.part") for name in seen), seen)
    expect("afterwards", os.listdir("local") == [] and os.listdir("shared") == ["run.lull"],
           (os.listdir("local"), os.listdir("shared")))
    expect("it is whole", meta("shared/run.lull")["recording.version"] != "")
    # The same without being told, where the target looks like NFS; elsewhere the file lies beside its name.
    shutil.copy(os.path.join(BUILD, "e2e/part/libnfs.so"), ".")  # LD_PRELOAD takes no blanks
    preload = dict(LD_PRELOAD=os.path.abspath("libnfs.so"), TMPDIR=os.path.abspath("local"))
    profile("-t", "nvtx", "-o", "shared/auto", "sh", "-c", "ls local shared >seen", env=preload)
    seen = open("seen").read().split()
    expect("on NFS", any(re.fullmatch(r"lull-\d+-auto\.lull\.part", name) for name in seen), seen)
    expect("delivered", meta("shared/auto.lull") and os.listdir("local") == [], os.listdir("local"))
    profile("-t", "nvtx", "-o", "own", "sh", "-c", "ls . local >seen", env=preload)
    seen = open("seen").read().split()
    expect("not on NFS", "own.lull.part" in seen, seen)
    said = profile("--part-dir=nowhere", "-o", "shared/x", "true", status=1)
    expect("no such folder", "nowhere" in said and said.count("\n") == 1, said)
    # A place that cannot be reached at the end: the report is whole, and we say where.
    said = profile("-t", "none", "--part-dir=local", "-o", "shared/gone/x", "true", status=1)
    expect("undeliverable", "the complete report is at local/" in said, said)
    expect("it is there", len(os.listdir("local")) == 1, os.listdir("local"))


# ---- the flight recorder ----

def steps_of(report, n_missing=0):
    """Numbers of the steps in a report, and when each began by CLOCK_MONOTONIC; so many at most are left out in between."""
    with open(report, "rb") as f:
        epoch_ns = struct.unpack_from("<Q", f.read(64), 24)[0]
    found = {row["number"]: epoch_ns + row["start_ns"] for row in ask(report, "select number, start_ns from step")}
    expect(f"steps of {report} follow each other", found and max(found) - min(found) + 1 <= len(found) + n_missing, found)
    return found


def slow_steps():
    """(report, number of the step, what is said of it) for each report that there is, all for a slow step."""
    found = [(report, meta(report)["flight.reason"]) for report in reports()]
    expect("a slow step is the reason", found and all(re.match(r"step \d+ took ", reason) for _, reason in found), found)
    return [(report, int(reason.split()[1]), reason) for report, reason in found]


def in_ns(text):
    """A duration as it is printed; its last digit was rounded."""
    value, unit = re.match(r"([\d.]+) (\w+)", text).groups()
    return float(value) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def a_slow_step_is_in_the_dump():
    """The planted one, or one that the machine made: what is said of it is in the report."""
    profile("--flight=20", "--trigger=step>200ms", "-o", "slow", LOOP, "--steps=160", "--slow=60", env=SIM)
    for report, number, reason in slow_steps():
        row = ask(report, f"select dur_ns from step where number = {number}")
        expect("the step", row and row[0]["dur_ns"] > 200e6, row)
        expect("its length", abs(in_ns(reason.split(" took ")[1]) / row[0]["dur_ns"] - 1) < 0.01, (reason, row))
        if number < 10:
            continue  # made by the machine: there may be nothing before it
        # Dimensions are complete: kernels have names, threads processes.
        row = ask(report, "select count(*) as n, sum(name is null) as unnamed from kernels")[0]
        expect("kernels", row["n"] > 0 and not row["unnamed"], row)
        said = run(LULL, "why", report)
        expect("why reads it", "error" not in said, said)


# One step takes 50 times as long as the longest of the others.
ONE_SLOW = """
import lull, time
longest = 0
for i in range(100):
    lull.step(i)
    begin = time.monotonic()
    time.sleep(50 * longest if i == 80 else 0.002)
    longest = max(longest, time.monotonic() - begin)
"""


def relative_rules_need_no_number():
    profile("--flight=20", "--trigger=step>10x", "-t", "nvtx", "-o", "rel", sys.executable, "-c", ONE_SLOW)
    for _, number, reason in slow_steps():
        m = re.fullmatch(rf"step {number} took (\S+ \w+), usually (\S+ \w+)", reason)
        expect("the reason", m and in_ns(m[1]) > 9.9 * in_ns(m[2]), reason)


def start_loop(*words, n_steps=100000):
    p = runner.start([LULL, "profile", "-s", "none", "--python-sampling=false", f"--session-new={SESSION}", *words, LOOP,
                      f"--steps={n_steps}"], env={**CLEAN, **SIM}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                     text=True)
    until(lambda: "recording" in runner.run([LULL, "status", f"--session={SESSION}"]).stdout, "the session begins")
    return p


def end(p):
    """End the program. Returns what was said."""
    for child in children(p.pid):
        with contextlib.suppress(ProcessLookupError):  # a helper of the recorder that has just ended
            os.kill(child, signal.SIGTERM)
    return runner.finish(p)[1]


def snapshots_until_steps_are_forgotten(name):
    """Ask for reports until one lacks the first step, which is older than what is kept; the number of them."""
    n = 0

    def is_forgotten():
        nonlocal n
        n += 1
        said = run(LULL, "snapshot", f"--session={SESSION}")
        expect("snapshot", said == f"lull: wrote {name}-{n}.lull\n", said)
        return ask(f"{name}-{n}.lull", "select min(number) as first from step")[0]["first"]

    until(is_forgotten, "the first steps are forgotten")
    return n


def await_steps(url):
    """The program goes on: some steps come."""
    before = runner.metric(url, "lull_step_seconds_count")
    until(lambda: runner.metric(url, "lull_step_seconds_count") > before + 2, "more steps come")


def dumps_come_when_asked_and_are_numbered():
    p = start_loop("--flight=1", "--metrics-port=0", "-o", "ask")
    url = runner.url_of_metrics(p)
    n = snapshots_until_steps_are_forgotten("ask")
    await_steps(url)
    os.kill(p.pid, signal.SIGUSR1)
    until_file(f"ask-{n + 1}.lull")
    written_ns = time.monotonic_ns()
    await_steps(url)
    said = end(p)
    expect("both are told", f"ask-{n}.lull: lull snapshot" in said and f"ask-{n + 1}.lull: SIGUSR1" in said, said)
    expect("the end is kept, too: the program was killed", f"ask-{n + 2}.lull" in said and "none lost" in said, said)
    expect("reports", sorted(reports()) == sorted(f"ask-{i}.lull" for i in range(1, n + 3)), reports())
    before, after, last = (steps_of(f"ask-{i}.lull") for i in range(n, n + 3))
    expect("in order", max(before) < max(after) < max(last), (before, after, last))
    recent = {number for number, at_ns in before.items() if at_ns >= written_ns - 10**9}
    expect("what was recent is there again", recent <= set(after), (recent, after))


def without_a_reason_nothing_is_written():
    said = profile("--flight=1", "-o", "quiet", LOOP, "--steps=50", env=SIM)
    expect("nothing", reports() == [] and "nothing was recorded" in said, (reports(), said))
    # Reports of earlier runs are in nobody's way, and stay.
    open("failed.lull", "w").close()
    open("failed-1.lull", "w").close()
    said = profile("--flight=1", "-o", "failed", "sh", "-c", "exit 3", status=3)
    expect("a failure", meta("failed-2.lull")["flight.reason"] == "the program ended with status 3", said)
    expect("the old ones", os.stat("failed.lull").st_size == os.stat("failed-1.lull").st_size == 0)


def a_crash_is_kept():
    said = profile("--flight=600", "-o", "abort", LOOP, "--steps=500", env=dict(SIM, LULL_SIM_DIE_AT="500"), status=134)
    expect("reason", "signal 6" in meta("abort-1.lull")["flight.reason"], said)
    # Ten launches a step.
    expect("steps", 45 < len(steps_of("abort-1.lull")) <= 51, steps_of("abort-1.lull"))
    # A worker that crashes while the program goes on, until that is written.
    said = profile("--flight=1", "-t", "nvtx", "-o", "worker", "sh", "-c",
                   "sh -c 'kill -SEGV $$'; while [ ! -e worker-1.lull ]; do sleep 0.1; done; exit 0")
    expect("worker", "signal 11" in meta("worker-1.lull")["flight.reason"], said)


def slow_steps_cannot_flood():
    for n in (600, 2400, 9600):  # until the program goes on after the first one was written
        said = profile("--flight=0.5", "--flight-limit=2", "--trigger=step>1us", "-o", "flood", LOOP, f"--steps={n}", env=SIM)
        if len(reports()) > 1:
            break
        for name in reports():
            os.unlink(name)
    expect("two reports", reports() == ["flood-1.lull", "flood-2.lull"], (reports(), said))
    expect("the others are counted", int(meta("flood-2.lull")["flight.not_written"]) > 0, meta("flood-2.lull"))


def names_without_end_are_forgotten():
    n_names = 600000
    said = profile("--flight=60", "-t", "nvtx", "-o", "names", os.path.join(BUILD, "e2e/names"), str(n_names), status=1)
    facts = meta("names-1.lull")
    n = ask("names-1.lull", "select count(*) as n from label")[0]["n"]
    expect("it was begun anew", int(facts.get("flight.begun_anew", 0)) >= 1 and n < n_names, (facts, n))
    size = os.stat("names-1.lull").st_size
    expect("and the report is small", size < 64e6, (size, said))


def bad_rules_are_refused():
    for words, part in ((["--trigger=step>2x"], "--trigger needs --flight"),
                        (["--flight=5", "--trigger=step<2x"], "is not a rule"),
                        (["--flight=5", "--trigger=step>0.5x"], "is not a rule"),
                        (["--flight=5", "--trigger=step>5 parsecs"], "is not a rule"),
                        (["--flight=-1"], "--flight is 0 to 86400"),
                        (["--flight=5", "-c", "cudaProfilerApi"], "exclude each other"),
                        (["--metrics-port=http"], "is not [ADDRESS:]PORT"),
                        (["--metrics-port=1.2.3:80"], "not an IPv4 address"),
                        (["--metrics-port=70000"], "is not [ADDRESS:]PORT")):
        said = profile(*words, "true", status=2)
        expect(f"{words}", part in said and said.count("\n") == 1, said)
    p = start_loop("-o", "plain")
    said = run(LULL, "snapshot", f"--session={SESSION}", status=2)
    expect("snapshot of a plain recording", "--flight=SECONDS" in said and said.count("\n") == 1, said)
    end(p)


def a_dead_recorder_leaves_its_ring():
    p = start_loop("--flight=1", "-o", "dead")
    n = snapshots_until_steps_are_forgotten("dead")
    loop = children(p.pid)
    p.kill()
    p.wait()
    for pid in loop:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    run(LULL, "recover", "dead-ring.lull.part")
    # The recorder had the start of one, but not its end.
    seen, left = steps_of(f"dead-{n}.lull"), steps_of("dead-ring.lull", n_missing=1)
    expect("the last steps", max(left) >= max(seen), (max(seen), max(left)))


# ---- metrics ----

LABELS = r'\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"(?:,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\}'
SAMPLE = re.compile(rf"^([a-zA-Z_:][\w:]*)({LABELS})? ([-+]?[\d.]+(?:[eE][-+]?\d+)?|[-+]Inf|NaN)$")


def parse_metrics(text):
    """The text format 0.0.4 by its description: every sample of a family after its TYPE, each series once."""
    types, values, family = {}, {}, None
    expect("the last line ends", text.endswith("\n"))
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            expect(line, family not in types and kind in ("counter", "gauge", "histogram"))
            types[family] = kind
        elif line.startswith("# HELP "):
            expect(line, len(line.split(" ", 3)) == 4)
        else:
            m = SAMPLE.match(line)
            expect("a sample", m, line)
            base = re.sub(r"_(bucket|sum|count)$", "", m[1]) if types.get(family) == "histogram" else m[1]
            expect("it belongs to its family", base == family, line)
            expect("once", (m[1], m[2]) not in values, line)
            values[m[1], m[2]] = float(m[3])
            if types[family] == "counter" and not family.startswith("DCGM_"):  # on a machine with a GPU; named by others
                expect("counters end in _total", m[1].endswith("_total"), line)
    buckets = [v for (name, _), v in values.items() if name == "lull_step_seconds_bucket"]
    expect("buckets rise", buckets == sorted(buckets) and buckets[-1] == values["lull_step_seconds_count", None], buckets)
    return values


def fetch(url):
    return urllib.request.urlopen(url, timeout=limit(120)).read().decode()


def metrics_are_told_while_it_runs():
    p = start_loop("--metrics-port=0", "-o", "m")
    url = runner.url_of_metrics(p)
    until(lambda: parse_metrics(fetch(url))["lull_step_seconds_count", None] >= 100, "steps are counted")
    first, second = parse_metrics(fetch(url)), None
    until(lambda: parse_metrics(fetch(url))["lull_kernels_total", None] > first["lull_kernels_total", None], "kernels")
    second, told_ns = parse_metrics(fetch(url)), time.monotonic_ns()
    for (name, labels), value in first.items():
        if name.endswith("_total"):
            expect(f"{name} never falls", second[name, labels] >= value)
    shares = [v for (name, _), v in second.items() if name == "lull_device_idle_ratio"]
    expect("shares", len(shares) == 6 and 0 < sum(shares) < 1, shares)
    expect("bytes", second["lull_copied_bytes_total", '{kind="host-to-device"}'] > 0)
    expect("losses", second["lull_events_lost_total", None] == 0)
    strangers_do_no_harm(url)
    expect("it still answers", parse_metrics(fetch(url)))
    said = end(p)
    expect("the recording is whole", "m.lull" in said and "none lost" in said, said)
    check_estimate(second, told_ns)


def check_estimate(told, told_ns):
    """Busy time as told is at least that of the kernels that were told of, and at most that of all work until then."""
    with open("m.lull", "rb") as f:
        epoch_ns = struct.unpack_from("<Q", f.read(64), 24)[0]
    busy = next(v for (name, _), v in told.items() if name == "lull_device_busy_seconds_total") * 1e9
    n = int(told["lull_kernels_total", None])
    least = ask("m.lull", f"select sum(dur_ns) as ns from (select dur_ns from kernel order by start_ns limit {n})")[0]["ns"]
    most = ask("m.lull", "select sum(dur_ns) as ns from (select start_ns, dur_ns from kernel union all select start_ns, dur_ns "
               f"from memcpy union all select start_ns, dur_ns from memset) where start_ns <= {told_ns - epoch_ns}")[0]["ns"]
    # Seconds are told with nine digits; some nanoseconds are lost where the clock of the device is fitted.
    expect("busy time", 0.999 * least <= busy <= 1.001 * most, (least, busy, most))


def strangers_do_no_harm(url):
    """Clients that send garbage, nothing, or read nothing; more of them than are served."""
    port = int(re.search(r":(\d+)/", url)[1])
    held = []
    for junk in (b"\0\xff" * 500, b"GET", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000, b"", b"POST /metrics HTTP/1.1\r\n"
                 b"Host: x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 5000):
        for _ in range(4):
            s = socket.create_connection(("127.0.0.1", port), timeout=limit())
            try:
                s.sendall(junk)
            except OSError:
                pass
            held.append(s)
    for s in held:
        s.close()
    for path, status in (("/", 404), ("/etc/passwd", 404), ("/metrics/..", 404)):
        try:
            fetch(f"http://127.0.0.1:{port}{path}")
        except urllib.error.HTTPError as e:
            expect(path, e.code == status, e.code)
        else:
            raise AssertionError(f"{path} is answered")


def a_port_in_use_is_said_before_the_program_starts():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        said = profile(f"--metrics-port={s.getsockname()[1]}", "touch", "ran", status=1)
    expect("one line", "--metrics-port" in said and said.count("\n") == 1 and not os.path.exists("ran"), said)


TESTS = (
    environments_of_launchers_are_understood,
    names_do_not_collide,
    ranks_that_are_not_wanted_run_untouched,
    stage_heads_are_the_first_of_each_stage,
    *(runner.named(f"{test.__name__}_{family}", test, family) for test in (a_launcher_around_lull, lull_around_a_launcher)
      for family in FAMILIES),
    workers_that_learn_their_rank_late_have_it,
    unfinished_reports_lie_where_they_should,
    a_slow_step_is_in_the_dump,
    relative_rules_need_no_number,
    dumps_come_when_asked_and_are_numbered,
    without_a_reason_nothing_is_written,
    a_crash_is_kept,
    slow_steps_cannot_flood,
    names_without_end_are_forgotten,
    bad_rules_are_refused,
    a_dead_recorder_leaves_its_ring,
    metrics_are_told_while_it_runs,
    a_port_in_use_is_said_before_the_program_starts,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:], after=nothing_is_left)
