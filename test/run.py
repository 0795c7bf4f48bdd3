#!/usr/bin/env python3
"""Run the tests side by side, show how far it is, and list at the end what failed and what was skipped, and why.

    test/run.py [--build BUILD] [--jobs N] [--kind KIND] [--no-build | --build-only] [--list] [PATTERN ...]

A test program is named KIND/NAME, as in e2e/osrt; a test case KIND/NAME/CASE. A pattern chooses the programs whose names
hold it, or one program or case by its whole name. What there is to run is in suite.py; what programs print is read by
results.py. Everything is built first, with make. A program that ends without having run a case has failed, and one that
says nothing for LIMIT_S is taken for hung.
"""
import argparse
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import results
import suite

LIMIT_S = 1800 * int(os.environ.get("LULL_TEST_PATIENCE", "1"))  # against hangs; the slowest program takes 2 minutes
# What make -k says of targets that failed, and of those that need them.
NOT_MADE = re.compile(r"\*\*\* \[(?:[^]]*: )?([^]]+)\] (?:Error|Terminated|Killed)|Target '(.*)' not remade because of errors")
N_LINES = 25  # of the output of a case that failed, in the list at the end


def clock(seconds):
    """12:05, as people read it."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def plural(n, word):
    return f"{n} {word}" + ("" if n == 1 else "s")


class Screen:
    """One line for each program that ended; on a terminal also one that says what is running."""

    def __init__(self, n_programs):
        self.began = time.monotonic()
        self.n_programs, self.n_ended = n_programs, 0
        self.running = {}
        self.lock = threading.Lock()
        self.is_live = sys.stdout.isatty()

    def clear(self):
        if self.is_live:
            sys.stdout.write("\r\033[K")

    def draw(self):
        if not self.is_live or not self.running:
            return
        names = " ".join(sorted(self.running))
        sys.stdout.write(f"[{self.n_ended}/{self.n_programs}  {clock(time.monotonic() - self.began)}]  {names}"[:79])
        sys.stdout.flush()

    def say(self, line):
        with self.lock:
            self.clear()
            print(line, flush=True)
            self.draw()

    def start(self, program):
        with self.lock:
            self.running[program.name] = time.monotonic()
            self.clear()
            self.draw()

    def end(self, program, outcome):
        with self.lock:
            took = time.monotonic() - self.running.pop(program.name)
            outcome.took_s = took
            self.n_ended += 1
            self.clear()
            width = len(str(self.n_programs))
            done = f"[{self.n_ended:{width}}/{self.n_programs} {clock(time.monotonic() - self.began):>6}]"
            print(f"{done}  {program.name:<28} {outcome.summary():<32} {took:6.1f} s", flush=True)
            self.draw()


def apart():
    """
    Words before a command that give it a /dev/shm of its own, as large as ours. lull keeps its sessions there and lists
    those of all programs, so that a test would meet the sessions of others, which end at any moment. None where that takes
    rights that we do not have: tests name the sessions that they mean, and pass there, too. LULL_TEST_APART tells them.
    """
    try:
        memory = os.statvfs("/dev/shm")
        size = f"{memory.f_blocks * memory.f_frsize // 1024}k"
        words = ["env", "LULL_TEST_APART=1", "unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size="$0",mode=1777 tmpfs /dev/shm && exec "$@"', size]
        tried = subprocess.run([*words, "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return []
    return [] if tried.returncode else words


def end_group(child):
    """A program that hangs, with everything it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_program(program, case, logs, before):
    """Run it to its end; gives its results.Outcome. Its output goes to a file of the build folder."""
    path = os.path.join(logs, program.name.replace("/", "-") + ".log")
    argv, env = program.command(case)
    with open(path, "w+b") as log:
        child = subprocess.Popen([*before, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                 env={**os.environ, **env}, cwd=os.path.dirname(HERE), start_new_session=True)
        try:
            status = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = f"hung: ended after {LIMIT_S} s"
            end_group(child)
            child.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    return results.read(text, status, is_one_case=program.is_one_case)


def worker(todo, case, logs, before, screen, outcomes, not_made):
    while True:
        try:
            program = todo.get_nowait()
        except queue.Empty:
            return
        screen.start(program)
        missing = [target for variant, target in program.needs if (variant, target) in not_made]
        try:
            outcome = (results.Outcome.broken(f"{missing[0]} could not be built") if missing else
                       run_program(program, case, logs, before))
        except OSError as e:
            outcome = results.Outcome.broken(f"{program.name} cannot be run: {e}")
        screen.end(program, outcome)
        outcomes[program.name] = outcome


def build(programs, args, screen):
    """Make what the programs need, all of a kind at once; gives the targets that failed, each with its variant."""
    wanted, failed = {}, set()
    for program in programs:
        for variant, target in program.needs:
            wanted.setdefault(variant, {})[target] = None
    env = {**os.environ, "MAKEFLAGS": " ".join(w for w in os.environ.get("MAKEFLAGS", "").split()
                                               if not w.startswith(("-j", "--jobserver")))}
    for variant, targets in wanted.items():
        step = time.monotonic()
        command = ["make", "--no-print-directory", "-k", "-j", str(args.jobs), *variant, *targets]
        log = os.path.join(args.logs, "make-" + variant[0].partition("=")[2].replace("/", "-") + ".log")
        with open(log, "wb") as to:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT,
                                    env=env, cwd=os.path.dirname(HERE)).returncode
        took = clock(time.monotonic() - step)
        screen.say(f"built {' '.join(variant)}: {took}" if not status else
                   f"building {' '.join(variant)} FAILED after {took}:")
        if status:
            with open(log, errors="replace") as f:
                said = f.read()
            screen.say("".join(line for line in said.splitlines(True) if not line.startswith("  "))[-6000:])
            # One that is not named may be from an earlier build: without any name, none is to be trusted.
            failed |= {(variant, a or b) for a, b in NOT_MADE.findall(said)} or {(variant, target) for target in targets}
    return failed


def show_failures(programs, outcomes):
    failed = [(p, case) for p in programs for case in outcomes[p.name].failed]
    if not failed:
        return
    print(f"\n{plural(len(failed), 'failure')}:")
    for program, case in failed:
        name = program.name if program.is_one_case else f"{program.name}/{case.name}"
        print(f"\n  make test T={name}")
        for line in case.output[-N_LINES:]:
            print(f"    {line}")


def show_skips(programs, outcomes):
    reasons = {}
    for program in programs:
        for case in outcomes[program.name].skipped:
            name = program.name if program.is_one_case else f"{program.name}/{case.name}"
            reasons.setdefault(case.reason, []).append(name)
    if reasons:
        print("\nskipped:")
    for reason, names in sorted(reasons.items()):
        print(f"  {reason}: {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else ""))


def show(programs, outcomes, took_s, built_s):
    """The failures, the skips, and the sums."""
    show_skips(programs, outcomes)
    show_failures(programs, outcomes)
    all_of = lambda what: sum(len(getattr(o, what)) for o in outcomes.values())
    print(f"\n{plural(len(programs), 'program')} in {clock(took_s)}, of which {clock(built_s)} to build")
    print(f"{all_of('passed')} passed, {all_of('failed')} failed, {all_of('skipped')} skipped")
    return 1 if all_of("failed") else 0


def choose(programs, patterns):
    """Those that a pattern names, and the case if it names one."""
    if not patterns:
        return programs, None
    for program in programs if len(patterns) == 1 else []:
        if (patterns[0] + "/").startswith(program.name + "/"):
            return [program], patterns[0][len(program.name) + 1:]
    chosen = [p for p in programs if any(pattern in p.name for pattern in patterns)]
    if not chosen:
        sys.exit(f"test: nothing is named {' or '.join(patterns)}; 'make test-list' shows all names")
    return chosen, None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="the build folder (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs built at once (one a core)")
    parser.add_argument("--kind", help="only those of some kinds: unit,golden")
    parser.add_argument("--build-only", action="store_true", help="run nothing")
    parser.add_argument("--no-build", action="store_true", help="run what is there")
    parser.add_argument("--list", action="store_true", help="the names of all programs")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="which to run (all)")
    return parser.parse_args()


def main():
    args = parse()
    programs = suite.programs(args.build, args.kind)
    if args.list:
        print("\n".join(p.name for p in programs))
        return 0
    programs, case = choose(programs, args.patterns)
    args.logs = os.path.join(os.path.dirname(HERE), args.build, "test")
    os.makedirs(args.logs, exist_ok=True)
    screen = Screen(len(programs))
    not_made = set() if args.no_build else build(programs, args, screen)
    built_s = time.monotonic() - screen.began
    if args.build_only:
        return 1 if not_made else 0
    todo = queue.Queue()
    for program in sorted(programs, key=lambda p: -p.weight):
        todo.put(program)
    outcomes, before = {}, apart()
    workers = [threading.Thread(target=worker, args=(todo, case, args.logs, before, screen, outcomes, not_made))
               for _ in range(args.jobs + 1)]  # one more than cores: a third of the time of e2e tests is waiting
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return show(programs, outcomes, time.monotonic() - screen.began, built_s)


if __name__ == "__main__":
    sys.exit(main())
