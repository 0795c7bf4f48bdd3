#!/usr/bin/env python3
"""Jobs of many ranks, and long ones: launchers, names of reports, part files, the flight recorder, metrics.

mpirun is the real one where it is installed; other launchers are what they document: variables.
Usage: test_job.py BUILD
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = {"LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
LIMIT_S = 120

# What a launcher would have set must not come from whoever runs the tests.
CLEAN = {k: v for k, v in os.environ.items()
         if not re.match(r"(OMPI|PMI|PMIX|SLURM|RAY|TORCHELASTIC|MPI|PBS|LSB)_|(LOCAL_)?RANK$|WORLD_SIZE|MASTER_|JOB_", k)}


def expect(what, is_so, got=""):
    if not is_so:
        sys.exit(f"FAIL {what}: {got}")


def run(*words, env=None, status=0):
    """Run a command; what it wrote to standard error."""
    done = subprocess.run(words, env={**CLEAN, **(env or {})}, capture_output=True, text=True, timeout=LIMIT_S)
    if status is not None:
        expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done.stderr


def profile(*words, env=None, status=0):
    return run(LULL, "profile", "-s", "none", "--python-sampling=false", *words, env=env, status=status)


def ask(report, sql):
    out = subprocess.run([LULL, "query", report, sql, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def meta(report):
    return {row["key"]: row["value"] for row in ask(report, "select key, value from meta")}


def reports():
    return sorted(name for name in os.listdir(".") if name.endswith(".lull"))


def in_folder(test):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        test()
        left = [name for name in os.listdir(".") if ".part" in name]
        expect("nothing unfinished is left", not left, left)
        os.chdir("/")


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


def mpirun_of(family):
    words = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"], "mpich": ["mpirun.mpich"]}[family]
    if not shutil.which(words[0]):
        print(f"SKIPPED: no {family} here (make setup)")
        return None
    return words


def real_launchers_around_lull():
    for family, launcher in (("openmpi", "openmpi"), ("mpich", "hydra")):
        mpirun = mpirun_of(family)
        if not mpirun:
            continue
        run(*mpirun, "-n", "3", LULL, "profile", "-q", "-s", "none", "-t", "none", "--ranks=0,2", "-o", family, "true")
        expect(family, [r for r in reports() if r.startswith(family)] == [f"{family}-rank0.lull", f"{family}-rank2.lull"],
               reports())
        facts = [meta(f"{family}-rank{n}.lull") for n in (0, 2)]
        expect(f"facts of {family}", [f["rank"] for f in facts] == ["0", "2"] and
               all(f["world_size"] == "3" and f["launcher"] == launcher for f in facts), facts)
        if family == "openmpi":
            expect("one job", facts[0]["job"] == facts[1]["job"], facts)


def lull_around_real_launchers():
    for family in ("openmpi", "mpich"):
        mpirun = mpirun_of(family)
        if not mpirun:
            continue
        profile("-t", "nvtx", "--ranks=1-2", "-o", family, *mpirun, "-n", "3", "sh", "-c", "true; :")
        rows = ask(f"{family}.lull", "select distinct rank, world_size from process where has_rank and has_agent "
                   "order by rank")
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
    preload = dict(LD_PRELOAD=os.path.join(BUILD, "e2e/part/libnfs.so"), TMPDIR=os.path.abspath("local"))
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
    expect("undeliverable", "the report is whole, at local/" in said, said)
    expect("it is there", len(os.listdir("local")) == 1, os.listdir("local"))


# ---- the flight recorder ----

def steps_of(report):
    return ask(report, "select count(*) as n, max(dur_ns) as longest, min(start_ns) as first, "
               "max(start_ns + dur_ns) as last from step")[0]


def record_slow_step(name, step, *words):
    """Record the loop with a planted step. A machine that stalls may have a slow step of its own just before: again."""
    for attempt in range(4):
        said = profile("--flight=1", *words, "-o", f"{name}{attempt}", LOOP, f"--steps={step + 150}", f"--slow={step}",
                       env=SIM)
        m = re.search(rf"(\S+)\.lull: (step {step} took .*)", said)
        if m:
            return m[1] + ".lull", m[2]
    sys.exit(f"FAIL step {step} is in no report: {said}")


def a_slow_step_is_in_the_dump():
    report, reason = record_slow_step("slow", 400, "--trigger=step>200ms")
    row = ask(report, "select dur_ns from step where number = 400")
    expect("the step", row and row[0]["dur_ns"] > 200e6, row)
    expect("the reason is kept", meta(report)["flight.reason"] == reason, (meta(report), reason))
    # Dimensions are complete: kernels have names, threads processes.
    row = ask(report, "select count(*) as n, sum(name is null) as unnamed from kernels")[0]
    expect("kernels", row["n"] > 500 and not row["unnamed"], row)
    said = run(LULL, "why", report)
    expect("why reads it", "error" not in said, said)


def relative_rules_need_no_number():
    _, reason = record_slow_step("rel", 150, "--trigger=step>30x")
    expect("the reason", re.fullmatch(r"step 150 took \S+ ms, usually \S+ ms", reason), reason)


def start_loop(*words, n_steps=100000):
    p = subprocess.Popen([LULL, "profile", "-s", "none", "--python-sampling=false", f"--session-new=job{os.getpid()}",
                          *words, LOOP, f"--steps={n_steps}"],
                         env={**CLEAN, **SIM}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until(lambda: "recording" in subprocess.run([LULL, "status", f"--session=job{os.getpid()}"], capture_output=True,
                                                text=True).stdout, "the session begins")
    return p


def until(is_so, what):
    for _ in range(LIMIT_S * 20):
        if is_so():
            return
        time.sleep(0.05)
    sys.exit(f"FAIL {what}: not within {LIMIT_S} s")


def end(p):
    """Ctrl-C twice: once for the program, once to insist. Returns what was said."""
    for child in children(p.pid):
        os.kill(child, signal.SIGTERM)
    return p.communicate(timeout=LIMIT_S)[1]


def children(pid):
    return [int(n) for n in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def dumps_come_when_asked_and_are_numbered():
    p = start_loop("--flight=1.5", "-o", "ask")
    time.sleep(3.5)
    said = run(LULL, "snapshot", f"--session=job{os.getpid()}")
    expect("snapshot", said == "lull: wrote ask-1.lull\n", said)
    os.kill(p.pid, signal.SIGUSR1)
    until(lambda: os.path.exists("ask-2.lull"), "a report after SIGUSR1")
    ring = os.stat("ask-ring.lull.part").st_size
    said = end(p)
    expect("both are told", "ask-1.lull: lull snapshot" in said and "ask-2.lull: SIGUSR1" in said, said)
    expect("the end is kept, too: the program was killed", "ask-3.lull" in said and "none lost" in said, said)
    expect("reports", reports() == ["ask-1.lull", "ask-2.lull", "ask-3.lull"], reports())
    for name in reports():
        s = steps_of(name)
        # Blocks are a second long, so that up to one more is there.
        expect(f"window of {name}", 1.0e9 < s["last"] - s["first"] < 4.0e9, s)
    first, second, third = (steps_of(name) for name in reports())
    expect("in order", first["last"] < second["last"] < third["last"], (first, second, third))
    expect("the ring is small", ring < 5 * os.stat("ask-1.lull").st_size, ring)


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
    said = profile("--flight=1", "-o", "abort", LOOP, "--steps=500", env=dict(SIM, LULL_SIM_DIE_AT="2000"), status=134)
    expect("reason", "signal 6" in meta("abort-1.lull")["flight.reason"], said)
    expect("steps", steps_of("abort-1.lull")["n"] > 20, steps_of("abort-1.lull"))
    # A worker that crashes while the program goes on.
    said = profile("--flight=1", "-t", "nvtx", "-o", "worker", "sh", "-c", "sh -c 'kill -SEGV $$'; sleep 2; exit 0")
    expect("worker", "signal 11" in meta("worker-1.lull")["flight.reason"], said)


def slow_steps_cannot_flood():
    said = profile("--flight=0.5", "--flight-limit=2", "--trigger=step>1us", "-o", "flood", LOOP, "--steps=600", env=SIM)
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
                        (["--metrics-port=1.2.3:80"], "no IPv4 address"),
                        (["--metrics-port=70000"], "is not [ADDRESS:]PORT")):
        said = profile(*words, "true", status=2)
        expect(f"{words}", part in said and said.count("\n") == 1, said)
    p = start_loop("-o", "plain")
    said = run(LULL, "snapshot", f"--session=job{os.getpid()}", status=2)
    expect("snapshot of a plain recording", "--flight=SECONDS" in said and said.count("\n") == 1, said)
    end(p)


def a_dead_recorder_leaves_its_ring():
    p = start_loop("--flight=1", "-o", "dead")
    time.sleep(2.5)
    loop = children(p.pid)
    p.kill()
    p.wait()
    p.stderr.close()
    for pid in loop:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    run(LULL, "recover", "dead-ring.lull.part")
    s = steps_of("dead-ring.lull")
    expect("the last seconds", s["n"] > 50 and s["last"] - s["first"] < 4.0e9, s)


# ---- metrics ----

LABELS = r'\{[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"(?:,[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")*\}'
SAMPLE = re.compile(rf"^([a-zA-Z_:][\w:]*)({LABELS})? ([-+]?[\d.]+(?:[eE][-+]?\d+)?|[-+]Inf|NaN)$")


def parse_metrics(text):
    """The text format 0.0.4 by its description: every sample of a family behind its TYPE, each series once."""
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
            if types[family] == "counter":
                expect("counters end in _total", m[1].endswith("_total"), line)
    buckets = [v for (name, _), v in values.items() if name == "lull_step_seconds_bucket"]
    expect("buckets rise", buckets == sorted(buckets) and buckets[-1] == values["lull_step_seconds_count", None], buckets)
    return values


def fetch(url):
    return urllib.request.urlopen(url, timeout=LIMIT_S).read().decode()


def metrics_are_told_while_it_runs():
    p = start_loop("--metrics-port=0", "-o", "m")
    url = re.search(r"http://127.0.0.1:\d+/metrics", p.stderr.readline())[0]
    until(lambda: parse_metrics(fetch(url))["lull_step_seconds_count", None] >= 100, "steps are counted")
    first, second = parse_metrics(fetch(url)), None
    until(lambda: parse_metrics(fetch(url))["lull_kernels_total", None] > first["lull_kernels_total", None], "kernels")
    second = parse_metrics(fetch(url))
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
    check_estimate(second)


def check_estimate(told):
    """Busy time as told is what the report says of the same work."""
    busy = next(v for (name, _), v in told.items() if name == "lull_device_busy_seconds_total")
    n = told["lull_kernels_total", None]
    row = ask("m.lull", "select sum(dur_ns) as busy from (select start_ns, dur_ns from kernel union all select start_ns, "
              f"dur_ns from memcpy) where start_ns <= (select start_ns from kernel order by start_ns limit 1 offset {n - 1:.0f})")[0]
    expect("busy time", abs(busy - row["busy"] / 1e9) < 0.05 * busy, (busy, row))


def strangers_do_no_harm(url):
    """Clients that send garbage, nothing, or read nothing; more of them than are served."""
    port = int(re.search(r":(\d+)/", url)[1])
    held = []
    for junk in (b"\0\xff" * 500, b"GET", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000, b"", b"POST /metrics HTTP/1.1\r\n"
                 b"Host: x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 5000):
        for _ in range(4):
            s = socket.create_connection(("127.0.0.1", port), timeout=10)
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
            sys.exit(f"FAIL {path} is answered")
        except urllib.error.HTTPError as e:
            expect(path, e.code == status, e.code)


def a_port_in_use_is_said_before_the_program_starts():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        said = profile(f"--metrics-port={s.getsockname()[1]}", "touch", "ran", status=1)
    expect("one line", "--metrics-port" in said and said.count("\n") == 1 and not os.path.exists("ran"), said)


TESTS = (environments_of_launchers_are_understood, names_do_not_collide, ranks_that_are_not_wanted_run_untouched,
         stage_heads_are_the_first_of_each_stage, real_launchers_around_lull, lull_around_real_launchers,
         workers_that_learn_their_rank_late_have_it, unfinished_reports_lie_where_they_should,
         a_slow_step_is_in_the_dump, relative_rules_need_no_number, dumps_come_when_asked_and_are_numbered,
         without_a_reason_nothing_is_written, a_crash_is_kept, slow_steps_cannot_flood, names_without_end_are_forgotten, bad_rules_are_refused,
         a_dead_recorder_leaves_its_ring, metrics_are_told_while_it_runs, a_port_in_use_is_said_before_the_program_starts)


def main():
    for test in TESTS:
        if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
            continue
        begin = time.monotonic()
        in_folder(test)
        print(f"PASS {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)


main()
