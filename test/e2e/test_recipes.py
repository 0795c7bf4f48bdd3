#!/usr/bin/env python3
"""The recipes of doc/recipes.md: their lines are run as they stand, on the simulated device.

Blocks that begin with "```sh run" are run. So are those of tools that are missing here (docker, srun, a cluster), with a
stand-in that does what the tool does to the command: it drops its own options, and sets the variables that it documents.
Paths that exist only there (/opt/lull, /shared, /results) are those of the test. Every block is at least read by the shell,
or as YAML or Python. tools/test-recipes runs those of Slurm, torchrun and Docker with the real tools.
Usage: test_recipes.py BUILD [NAME...]
"""
import ast
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import runner
from runner import children, expect, skip, until

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOOP = os.path.join(BUILD, "examples/train_cuda")
SESSION = f"recipes{os.getpid()}"
with open(os.path.join(ROOT, "doc/recipes.md"), encoding="utf-8") as recipes:
    TEXT = recipes.read()
BLOCKS = re.findall(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", TEXT, re.S | re.M)

# A launcher sets these; they must not come from whoever runs the tests.
CLEAN = {k: v for k, v in os.environ.items()
         if not re.match(r"(OMPI(?!_MCA)|PMI|PMIX|SLURM|RAY|TORCHELASTIC|JOB)_|(LOCAL_)?RANK$|WORLD_SIZE|MASTER_", k)}


def blocks(language, words):
    found = [text for kind, said, text in BLOCKS if kind == language and said == words]
    expect(f"blocks of {language} {words}", found)
    return found


def here(text):
    """The same with the paths of the test."""
    text = text.replace("/opt/lull/bin/lull", os.path.join(BUILD, "lull"))
    return re.sub(r"/(shared|results)\b", lambda m: os.path.join(os.getcwd(), m[1]), text).replace(":9464", ":0")


def stand_in(name, script):
    os.makedirs("bin", exist_ok=True)
    with open(f"bin/{name}", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(f"bin/{name}", 0o755)


def prepare():
    """A program to record: some steps on the simulated device, in place of Python."""
    for name in ("train.py", "train_ray.py"):
        with open(name, "w", encoding="ascii") as f:
            f.write(f"import os\nos.execv({LOOP!r}, ['train_cuda', '--steps=60'])\n")
    for folder in ("shared", "results"):
        os.makedirs(folder, exist_ok=True)
        shutil.copy("train.py", folder)
    stand_in("python", 'exec python3 "$@"\n')


def sh(text, **variables):
    """Run it as the document has it; any line that fails is a failure."""
    path = f"{os.getcwd()}/bin:{BUILD}:{os.environ['PATH']}"
    done = runner.run(["sh", "-ec", here(text)], 300,
                      env={**CLEAN, "PATH": path, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), **variables})
    expect(text, done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr


def ranks_of(report):
    """Rank, launcher of a report."""
    rows = runner.run([os.path.join(BUILD, "lull"), "query", report, "select key, value from meta", "--format", "json"], check=True)
    meta = {row["key"]: row["value"] for row in json.loads(rows.stdout)}
    return meta.get("rank") or meta.get("ranks"), meta.get("launcher")


def every_block_can_be_read():
    expect("all blocks are found", 2 * len(BLOCKS) == len(re.findall("^```", TEXT, re.M)) > 20, len(BLOCKS))
    for kind, _, text in BLOCKS:
        if kind == "sh":
            done = runner.run(["sh", "-n"], input=text)
            expect("the shell reads it", done.returncode == 0 and not done.stderr, f"{text}\n{done.stderr}")
        elif kind == "python":
            ast.parse(text)
        else:
            expect("a kind of block that is tested", kind == "yaml", kind)


def lines_of_the_doctor_are_its_lines():
    """Each recipe says which line of lull doctor tells what is missing: there are such lines."""
    said = runner.run([os.path.join(BUILD, "lull"), "doctor"]).stdout
    titles = {m[1].strip() for m in re.finditer(r"^  (?:ok|limited|no) +(\S+(?: \S+)*?)(?:  |$)", said, re.M)}
    table = re.search(r"^\| line of `lull doctor`.*?\n(?=\n)", TEXT, re.S | re.M)[0]
    named = {name for row in table.splitlines()[2:] if row for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    expect("lines", len(named) >= 6 and named <= titles, named - titles)
    for name in ("CPU samples", "context switches", "kernel counters", "container", "stacks from outside"):
        expect("it is named in a recipe", f"`{name}`" in TEXT.split("## Everywhere")[1], name)
        expect("it is a line", name in titles, name)
    for recipe in ("torchrun", "Docker", "Kubernetes", "Slurm", "Ray", "Jupyter"):
        part = re.search(rf"^## {recipe}\n(.*?)(?=^## |\Z)", TEXT, re.S | re.M)
        expect(f"{recipe} says what is missing", part and re.search(r"[Mm]issing", part[1]), recipe)


def everywhere():
    prepare()
    for text in blocks("sh", "run"):
        sh(text)
    expect("a report", os.path.exists("run.lull"))


def torchrun():
    """PyTorch 1.13 on Python 3.11 starts nothing unless output is redirected: there, that is asked for as well."""
    prepare()
    tool = shutil.which("torchrun")
    more = [words for words in ([], ["-r", "1", "-t", "1"])
            if tool and not runner.run([tool, *words, "--no_python", "--nproc_per_node", "1", "true"]).returncode]
    if not more:
        skip("no torchrun here that starts anything (Debian's package python3-torch); its variables are tested in e2e/job")
    stand_in("torchrun", f'exec {" ".join([tool, *more[0]])} "$@"\n')
    each, one = blocks("sh", "run torchrun")
    sh(each)
    expect("a report for each rank", sorted(os.listdir("job")) == ["run-rank0.lull", "run-rank1.lull"], os.listdir("job"))
    expect("its rank", ranks_of("job/run-rank1.lull") == ("1", "torchrun"), ranks_of("job/run-rank1.lull"))
    sh(one)
    expect("one for all", ranks_of("all.lull")[0] == "0-1", ranks_of("all.lull"))


def what_docker_starts_works():
    """Options of docker end at the image, which has no dash and follows no option with a value."""
    prepare()
    stand_in("docker", 'while [ "$1" != pytorch/pytorch ]; do shift; done\nshift\nexec "$@"\n')
    for text in blocks("sh", "docker"):
        expect("only rights differ", re.search(r"--shm-size 1g.*-w /app pytorch/pytorch", text, re.S), text)
        sh(text)
        expect("a report", os.path.exists("run.lull"))
        os.remove("run.lull")


def the_job_of_kubernetes_works():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("no module yaml here")
    prepare()
    job = yaml.safe_load(blocks("yaml", "")[0])
    expect("what it is", (job["apiVersion"], job["kind"], job["spec"]["completionMode"]) == ("batch/v1", "Job", "Indexed"), job)
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]
    expect("volumes", {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}, pod)
    expect("rights", container["securityContext"]["capabilities"]["add"] == ["PERFMON"], container)
    sh("cd /results && " + " ".join(f"'{word}'" for word in container["command"]), JOB_COMPLETION_INDEX="3")
    expect("its rank", ranks_of("results/run-rank3.lull")[0] == "3", glob.glob("results/*"))


def what_srun_starts_works():
    prepare()
    stand_in("srun", 'while [ "${1#-}" != "$1" ]; do shift; done\nSLURM_PROCID=8 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=16 '
             'SLURM_JOB_ID=5 exec "$@"\n')
    sh(blocks("sh", "srun")[0].split("lull why")[0])
    expect("the rank that was asked for", ranks_of("shared/job/run-rank8.lull") == ("8", "srun"), glob.glob("shared/job/*"))
    said = sh(blocks("sh", "sbatch")[0])
    # Which of the two depends on the machine: a step that lost its CPU is a slow one.
    expect("slow steps, or none", "nothing was recorded" in said or "slow-rank8-1.lull" in said, said)


def a_program_that_starts_ray_works():
    prepare()
    sh(blocks("sh", "ray")[0])
    expect("a report", os.path.exists("run.lull"))
    # What Ray would put before the worker's script.
    start = re.search(r'"py_executable": "([^"]+)"', blocks("python", "ray")[0])[1]
    sh(f"mkdir -p /shared/job; {start} train.py")
    expect("its report", len(glob.glob("shared/job/run-*.lull")) == 1, os.listdir("shared/job"))


def cpu_s(pid):
    """What a process has used of the CPUs; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def a_part_of_a_notebook_is_recorded():
    prepare()
    launch = here(blocks("sh", "jupyter")[0]).replace("--session-new=notebook", f"--session-new={SESSION}")
    expect("a server in a session", launch.strip().endswith("jupyter lab"), launch)
    stand_in("jupyter", f'exec {LOOP} --steps=1000000 >/dev/null\n')
    p = runner.start(["sh", "-c", "exec " + launch], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                     env={**CLEAN, "PATH": f"{os.getcwd()}/bin:{BUILD}:{os.environ['PATH']}",
                          "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")})
    until(lambda: SESSION in runner.run([os.path.join(BUILD, "lull"), "sessions"]).stdout, "the session begins")
    # Starting takes some milliseconds of CPU.
    until(lambda: any(cpu_s(pid) > 0.1 for pid in children(p.pid)), "the loop runs")
    said = sh(blocks("sh", "run notebook")[0].replace("=notebook", f"={SESSION}"))
    expect("kernels of that second", os.path.exists("cell.lull") and "Instances" in said, said)
    for child in children(p.pid):
        os.kill(child, signal.SIGTERM)
    runner.finish(p)


TESTS = (
    every_block_can_be_read,
    lines_of_the_doctor_are_its_lines,
    everywhere,
    torchrun,
    what_docker_starts_works,
    the_job_of_kubernetes_works,
    what_srun_starts_works,
    a_program_that_starts_ray_works,
    a_part_of_a_notebook_is_recorded,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
