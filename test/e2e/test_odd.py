#!/usr/bin/env python3
"""Programs and places that are out of the ordinary: a recorded program must fare as it does alone.

Usage: test_odd.py BUILD [NAME...]
"""
import os
import re
import resource
import shlex
import shutil
import signal
import sys

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
GUEST = os.path.join(BUILD, "e2e/odd_guest")
SIM = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
SKIPPED = 77


def run(command, **how):
    done = runner.run(command, **how)
    return done.returncode, (done.stdout, done.stderr)


def same(*words, options=("-t", "osrt", "-s", "none"), **how):
    """Status and output are those of the program alone; what lull said."""
    status, (out, _) = run([GUEST, *words], **how)
    if status == SKIPPED:
        skip(f"{words[0]} is not possible here")
    recorded, (out_too, said) = run([LULL, "profile", "-f", "true", "-o", "odd", *options, GUEST, *words], **how)
    expect(f"status of {words}", recorded == (status if status >= 0 else 128 - status), (status, recorded, said))
    expect(f"output of {words}", out_too == out, (out, out_too))
    return said


def issues():
    out = run([LULL, "query", "odd.lull", "select name from issue"])[1][0]
    return out.split()


def a_fork_while_others_hold_the_loaders_lock_does_not_hang():
    same("walkers", options=("-t", "osrt,python-gil", "-s", "none"))


def the_way_out_in_a_handler_does_not_hang():
    # Calls take long, so that the handler comes in the middle of one.
    same("handler_exit", options=("-t", "cuda,osrt", "-s", "none"), env=dict(SIM, LULL_SIM_CALL_NS="20000"))
    # The real CUPTI has a lock in its hands by then, and its flush waits for it.
    same("handler_exit", options=("-t", "cuda", "-s", "none"), env=dict(SIM, LULL_SIM_CALL_NS="50000000", LULL_SIM_LOCK="1"))
    expect("what is missing is told", "device_tail" in issues(), issues())


def functions_are_the_right_ones_when_many_look_them_up():
    for _ in range(10):
        got = profile("--trace-library=libm.so*:*", GUEST, "symbols")
        expect("no wrong ones", got == (0, "0 wrong\n", ""), got)


def descriptors_may_be_closed():
    same("closed")


def a_sandbox_is_left_alone():
    same("sandbox", options=("-t", "osrt", "-s", "none", "--osrt-threshold=0"))
    expect("that is told", "sandboxed" in issues(), issues())


def a_sandbox_made_by_seccomp_is_left_alone():
    same("seccomp", options=("-t", "osrt", "-s", "none", "--osrt-threshold=0"))
    expect("that is told", "sandboxed" in issues(), issues())


def system_calls_made_directly_are_what_they_are():
    same("direct")
    expect("who only asks for a sandbox is in none", "sandboxed" not in issues(), issues())


def a_small_stack_is_enough():
    same("small_stack")
    same("signal_stack")
    same("signal_stack", "bare")


def arguments_may_take_all_the_room():
    same("full")
    same("full", "spawn")


def what_cannot_be_read_is_the_kernels_to_refuse():
    for sources in ("none", "osrt"):
        same("unreadable", options=("-t", sources, "-s", "none"))


def orphans_come_to_init():
    same("orphan")


def profile(*words, lull=LULL, **how):
    """Status, output and errors of the program, without what lull says."""
    status, (out, said) = run([lull, "profile", "-q", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", *words], **how)
    return status, out, said


def agents():
    """Names of the programs of the report that held the agent."""
    out = run([LULL, "query", "-f", "csv:nohdr", "odd.lull", "select exe from process where has_agent"])[1][0]
    return {os.path.basename(exe) for exe in out.splitlines()}


def compiled(name, compiler, *options):
    """A program that says hello and ends with 3."""
    with open("hello.c", "w", encoding="ascii") as f:
        # Looking for leaks takes ptrace(2), which may be slow or not permitted.
        f.write('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n'
                'const char *__asan_default_options(void);\n'
                'const char *__asan_default_options(void) { return "detect_leaks=0"; }\n')
    if not shutil.which(compiler) or run([compiler, *options, "-o", name, "hello.c"])[0] or run([f"./{name}"])[0] != 3:
        skip(f"{compiler} {' '.join(options)} makes no program here")
    return os.path.abspath(name)


def a_program_of_another_c_library():
    program = compiled("of_musl", "musl-gcc")
    with open("script", "w") as f:
        f.write(f"#! {program} word\n")
    os.chmod("script", 0o755)
    there = dict(os.environ, PATH=os.getcwd() + ":" + os.environ["PATH"])
    for words in ([program], ["./script"], ["of_musl"], ["sh", "-c", "of_musl"], ["sh", "-c", "./script"],
                  ["env", "of_musl"], ["env", "-i", program],
                  [sys.executable, "-S", "-c", "import os; os.execve(os.open('of_musl', 0), ['x'], {})"],
                  [sys.executable, "-S", "-c",
                   f"import os; print(end='', flush=True); p = os.posix_spawn('{program}', ['x'], os.environ); "
                   "os._exit(os.waitpid(p, 0)[1] >> 8)"]):
        got = profile(*words, env=there)
        expect(f"{words} of musl", got == (3, "hello\n", ""), got)
    got = profile("sh", "-c", "of_musl; /bin/true", env=there)
    expect("others hold the agent", "true" in agents(), (got, agents()))


def a_program_with_address_sanitizer():
    program = compiled("with_asan", "gcc", "-fsanitize=address")
    got = profile(program)
    expect("with AddressSanitizer", got == (3, "hello\n", ""), got)
    expect("it holds the agent", "with_asan" in agents(), agents())
    got = profile("env", "-i", "ASAN_OPTIONS=abort_on_error=0", program)
    expect("with another environment", got == (3, "hello\n", ""), got)
    got = profile("printenv", "ASAN_OPTIONS", env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    expect("the user's options stay", got == (0, "verify_asan_link_order=0:detect_leaks=0\n", ""), got)


def what_python_says_of_a_crash():
    words = [sys.executable, "-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)"]
    status, (_, alone) = run(words)
    recorded, (_, said) = run([LULL, "profile", "-q", "-f", "true", "-o", "odd", "-s", "none", *words])
    expect("it crashes", (status, recorded) == (-signal.SIGSEGV, 128 + signal.SIGSEGV), (status, recorded))
    alone, said = (re.sub("0x[0-9a-f]+", "address", text) for text in (alone, said))
    expect("it says the same", said == alone, (alone, said))


def a_program_in_valgrind():
    if not shutil.which("valgrind"):
        skip("no valgrind here")
    got = profile("--osrt-threshold=0", "valgrind", "-q", "--error-exitcode=9", GUEST, "small_stack")
    if got[0] == 128 + signal.SIGILL and "Illegal opcode" in got[2]:
        skip("this valgrind does not know all instructions of this machine, for which this was built")
    if "Valgrind: debuginfo reader" in got[2]:
        skip("this valgrind cannot read what this compiler says of its code")
    expect("valgrind says nothing", got[2] == "" and got[0] != 9, got)


def preloaded_libraries_can_be_taken_away():
    env = dict(os.environ, LD_PRELOAD="libm.so.6")
    agent = profile("printenv", "LD_PRELOAD")[1].strip()
    got = profile("printenv", "LD_PRELOAD", env=env)
    expect("first there", got == (0, f"{agent}:libm.so.6\n", ""), got)
    got = profile("env", "-u", "LD_PRELOAD", "printenv", "LD_PRELOAD", env=env)
    expect("then not", got == (0, f"{agent}\n", ""), got)
    got = profile("env", "LD_PRELOAD=libm.so.6", "printenv", "LD_PRELOAD")
    expect("then again", got == (0, f"{agent}:libm.so.6\n", ""), got)


HANDLER = """#include <pthread.h>
#include <unistd.h>
static void in_child(void) { usleep(10); }
__attribute__((constructor)) static void start(void) { pthread_atfork(0, 0, in_child); }
"""


def a_library_whose_handler_of_fork_comes_first():
    """It was there before the agent, so its handler runs before the agent knows that this is a child."""
    with open("handler.c", "w", encoding="ascii") as f:
        f.write(HANDLER)
    run(["gcc", "-shared", "-fPIC", "-o", "libhandler.so", "handler.c"])
    env = dict(os.environ, LD_PRELOAD=os.path.abspath("libhandler.so"))
    shell = ["sh", "-c", "for i in 1 2 3; do (true) || echo $?; done; (exit 7); echo $?"]
    got = profile(*shell, env=env)
    expect("its children live", got == (0, "7\n", ""), got)


def copy_of_lull(folder):
    agent = profile("printenv", "LULL_AGENT")[1].strip()
    os.makedirs(folder)
    for path in (LULL, agent):
        shutil.copy(path, folder)
    return os.path.join(folder, "lull")


def an_agent_that_cannot_be_read_is_left_out():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        skip("only root with setpriv(1) can be another user")
    lull = copy_of_lull("closed")
    os.chmod("closed", 0o700)
    got = profile("setpriv", "--reuid", "65534", "--clear-groups", "/bin/echo", "hi", lull=lull)
    expect("another user", got == (0, "hi\n", ""), got)
    libs = [word for word in run(["ldd", "/bin/echo"])[1][0].split() if word.startswith("/")]
    for name in ("/bin/echo", *libs):
        os.makedirs("jail" + os.path.dirname(name), exist_ok=True)
        shutil.copy(name, "jail" + name)
    got = profile("chroot", "jail", "/bin/echo", "hi")
    expect("another root", got == (0, "hi\n", ""), got)


def a_path_that_cannot_be_preloaded():
    lull = copy_of_lull("a folder: with all")
    got = profile("sh", "-c", "/bin/echo hi; exit 4", lull=lull)
    expect("blank and colon", got == (4, "hi\n", ""), got)
    expect("the agent is there", "echo" in agents(), agents())


def more_threads_than_places():
    """Of each of 4,500 threads that are there at once the call is in the report, or counted as lost."""
    same("crowd")
    out = run([LULL, "query", "-f", "csv:nohdr", "odd.lull", "select count(*) from oscall where name = 'usleep'"])[1][0]
    counts = dict(line.split(",") for line in run(
        [LULL, "query", "-f", "csv:nohdr", "odd.lull", "select name, count from issue"])[1][0].split())
    seen, unplaced, lost = int(out), int(counts.get("too_many_threads", 0)), int(counts.get("buffer_full", 0))
    expect("those without a place are told", 0 < seen < 4500 and unplaced > 0, (seen, counts))
    expect("all that have one are seen, or lost", seen + lost >= 4500 - unplaced, (seen, counts))


def a_small_program_takes_little_shared_memory():
    """Jobs start hundreds of processes, and /dev/shm is small in containers."""
    look = "/bin/true; stat -c %b $LULL_SESSION/*.image"
    status, (out, said) = run([LULL, "profile", "-q", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", "sh", "-c", look])
    sizes = [int(blocks) * 512 for blocks in out.split()]
    # A block of events, and a page or two of each table; whole tables would be half a megabyte.
    expect("bytes of each process", status == 0 and len(sizes) >= 2 and max(sizes) <= 192 << 10, (sizes, said))


def in_full_memory(what):
    """The guest in a /dev/shm of its own; what lull said."""
    guest = os.path.join(BUILD, "e2e/full_guest")
    recorded = shlex.join([LULL, "profile", "-f", "true", "-t", "nvtx", "-s", "none", "--cpuctxsw", "none", "-o",
                           os.path.abspath("odd"), guest, what])
    status, (out, said) = run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=100m none /dev/shm || exit 77; "
                               f"export TMPDIR=/dev/shm; {recorded}"])
    if status in (1, SKIPPED) and not out:
        skip(f"no /dev/shm of its own: {said.strip()}")
    expect(f"the program lives: {what}", (status, out) == (5, "survived\n"), (status, out, said))
    return said


def full_memory_harms_only_the_recording():
    said = in_full_memory("gap")
    expect("what is lost is said", " lost" in said and "none lost" not in said, said)
    said = in_full_memory("threads")
    expect("also of threads without a place", "4.00 k lost" in said and "no_memory" in issues(), said)


def a_head_gone_wild_harms_only_the_recording():
    for what in ("slots", "used"):
        said = in_full_memory(what)
        expect("there is a report", "odd.lull" in said, said)


def a_limit_of_memory_is_the_programs():
    for which, limit, mib in ((resource.RLIMIT_AS, 600 << 20, "400"), (resource.RLIMIT_DATA, 150 << 20, "100")):
        same("memory", mib, preexec_fn=lambda: resource.setrlimit(which, (limit, limit)))


def other_limits():
    for which, value in ((resource.RLIMIT_NOFILE, 4), (resource.RLIMIT_FSIZE, 100000), (resource.RLIMIT_STACK, 200000)):
        # For the program, not for the recorder.
        code = f"import resource as r, os; r.setrlimit({which}, ({value}, {value})); os.execv('{GUEST}', ['g', 'memory', '1'])"
        status, (out, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", sys.executable,
                                   "-S", "-c", code])
        expect(f"limit {which}", (status, out) == (0, "got it\n"), (status, out, said))


def a_small_limit_of_the_stack():
    """It is meant for the program; lull itself needs more."""
    def small():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))

    p = runner.start(["sleep", "1000"])
    for words in (["profile", "-o", "odd", "-f", "true", "sh", "-c", "ulimit -s; ulimit -Hs"], ["info", "odd.lull"],
                  ["stats", "odd.lull"], ["profile", "-o", "odd", "-f", "true", GUEST, "memory", "1"],
                  ["attach", "-o", "odd", "-f", "true", "--duration", "0.2", str(p.pid)]):
        status, (out, said) = run([LULL, *words], preexec_fn=small)
        is_fine = status == 0 or words[0] == "attach" and "ptrace" in said
        expect(words, is_fine and "crashed" not in said, (status, out, said))
        if "ulimit -s; ulimit -Hs" in words:
            expect("the limit of the program", out == "64\n64\n", out)


def more_processes_than_open_files():
    """Two descriptors each; the recorder takes what the hard limit allows, the program keeps its own."""
    # All are there at once, and stay when the recording ends with the one that has started them.
    child = "touch here-$0; read x <go"
    many = f"n=0; while [ $n -lt 60 ]; do sh -c '{child}' $n >/dev/null 2>&1 & n=$((n + 1)); done; " \
           "while [ $(ls | grep -c here-) -lt 60 ]; do sleep 0.1; done; ulimit -Sn"
    for hard, is_enough in ((1024, True), (64, False)):
        for name in os.listdir("."):
            os.unlink(name)
        os.mkfifo("go")
        status, (out, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "nvtx", "-s", "none", "--cpuctxsw", "none",
                                   "--wait", "primary", "/bin/sh", "-c", many],
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
        open("go", "w", encoding="ascii").close()
        expect("nothing is seen of it", (status, out) == (0, "64\n"), (status, out, said))
        expect("what is missing is counted", ("image_unopened" in issues()) != is_enough, (hard, issues(), said))
        expect("and said", ("too many open files" in said) != is_enough, said)
        expect("Python has not refused", "python_refused" not in issues(), issues())


def a_job_that_begins_again_gets_past_what_died():
    cheap = ("-t", "nvtx", "-s", "none", "--cpuctxsw", "none", "--python-sampling=false")
    again = [LULL, "profile", "-f", "true", "-o", "left", *cheap, "true"]
    first = runner.start([LULL, "profile", "-q", "-o", "left", *cheap, "sh", "-c",
                          "touch left.begun; while [ ! -e go ]; do sleep 0.1; done"])
    runner.until_file("left.begun")
    status, (_, said) = run(again)
    expect("nobody is robbed", status == 1 and "left.lull.part is being written by another recorder" in said, (status, said))
    first.kill()
    first.wait()
    open("go", "w").close()
    status, (_, said) = run(again)
    expect("it begins", status == 0 and "recover" in said and os.path.exists("left.lull"), (status, said))
    status, (_, said) = run([LULL, "recover", "left-unfinished.lull.part"])
    expect("the other is whole, too", status == 0 and os.path.exists("left-unfinished.lull"), (status, said))
    left = [name for name in os.listdir(".") if name.startswith("left") and name.endswith(".part")]
    expect("nothing else is left", not left, left)


def a_stranger_in_another_root():
    if os.getuid() != 0:
        skip("only root can be another user in another root")
    root = os.path.abspath("root")
    os.makedirs(root, exist_ok=True)
    said = same("stranger", root)
    expect("a child without an agent is told", "could not start (shared memory is not there" in said, said)
    expect("in the report, too", "agent_refused" in issues(), issues())


def why_an_agent_could_not_start_is_told():
    for which, value, reason in (("FSIZE", 100000, "ulimit -f"), ("NOFILE", 3, "ulimit -n")):
        # Standard streams are all that is open, and the child is a new process.
        code = (f"import resource as r, os; l = r.RLIMIT_{which}; r.setrlimit(l, ({value}, {value})); "
                "pid = os.fork(); pid or os._exit(3); os.waitpid(pid, 0)")
        status, (_, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", sys.executable, "-S",
                                 "-c", code])
        expect(f"{which} is named", status == 0 and f"could not start (a limit on " in said and reason in said, (status, said))


def without_proc_the_agent_is_found():
    if run(["unshare", "--mount", "umount", "-l", "/proc"])[0]:
        skip("/proc cannot be taken away here")
    status, (out, said) = run(["unshare", "--mount", "sh", "-c", 'umount -l /proc; exec "$@"', "sh", LULL, "profile", "-f", "true",
                               "-o", "odd", "-t", "osrt", "-s", "none", GUEST, "memory", "1"])
    expect("it is beside the command", (status, out) == (0, "got it\n"), (status, out, said))


def a_large_environment_passes():
    env = dict(os.environ, **{f"ODD_{i}": "x" * 100 for i in range(5000)})
    status, (out, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", "/bin/sh", "-c",
                               "echo ${ODD_4999}; exit 4", *("y" * 1000 for _ in range(500))], env=env)
    expect("large environment", (status, out) == (4, "x" * 100 + "\n"), (status, out[:200], said))


def a_recorder_that_was_told_to_ignore_children():
    # The program finds it as it was.
    code = ("import signal, sys; h = signal.getsignal(signal.SIGCHLD); print(h == signal.SIG_IGN); sys.exit(3)")
    status, (out, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", sys.executable, "-S",
                               "-c", code], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    expect("SIGCHLD ignored", (status, out) == (3, "True\n"), (status, out, said))


def a_recorder_without_standard_streams():
    def close_all():
        for fd in range(3):
            os.close(fd)

    fds = "import os; open('fds', 'w').write(str([fd for fd in range(3) if os.path.exists(f'/proc/self/fd/{fd}')]))"
    p = runner.start([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", sys.executable, "-S", "-c", fds],
                     preexec_fn=close_all)
    runner.finish(p)
    expect("status", p.returncode == 0, p.returncode)
    expect("the program's are closed", open("fds").read() == "[0]", open("fds").read())  # the file itself
    status, (out, said) = run([LULL, "info", "odd.lull"])
    expect("report", status == 0 and "sealed" in out, (out, said))


def processes_that_count_from_one():
    """A PID namespace: what is pid 1 in there is somebody else out here, and lives on."""
    inside = ["unshare", *([] if os.getuid() == 0 else ["-Ur"]), "-p", "-f"]
    if run([*inside, "true"])[0]:
        skip("unshare(1) may make no PID namespace here")
    status, (out, said) = run([LULL, "profile", "-f", "true", "-o", "odd", "-t", "osrt", "-s", "none", *inside, "sh", "-c",
                               "echo $$; sleep 0.2; sh -c 'exit 4'; exit $?"])
    expect("status", (status, out) == (4, "1\n"), (status, out, said))
    rows = run([LULL, "query", "-f", "csv:nohdr", "odd.lull", "select pid, exit_kind, exit_code from process where has_agent"])[1][0]
    rows = [tuple(int(word) for word in line.split(",")) for line in rows.split()]
    expect("numbers of ours", all(pid > 1 for pid, _, _ in rows), rows)
    expect("all ended", len(rows) >= 4 and all(kind in (1, 3) for _, kind, _ in rows), rows)


def without_a_report_it_says_why():
    for words, why in ((("--delay", "100"), "before --delay was over"),
                       (("-c", "nvtx", "-p", "no_such"), "no range no_such started"),
                       (("-c", "cudaProfilerApi"), "never called cudaProfilerStart()"),
                       (("-c", "lull"), "never called lull_start()"),
                       (("--steps", "active=1,repeat=1"), "no step that --steps selects"),
                       (("--flight", "10"), "nothing triggered a report of --flight"),
                       (("-Y", "true"), "`lull start` was never run")):
        status, (_, said) = run([LULL, "profile", "-s", "none", "-o", "never", *words, "true"])
        expect(f"why {words}", status == 0 and why in said, said)


def the_only_session_is_named():
    script = ('mount -t tmpfs none /dev/shm || exit 77; export TMPDIR=/dev/shm; "$@" launch -q --session-new=mine sleep 20 & '
              'p=$!; until "$@" start -o only --session=mine; do kill -0 $p || exit 1; sleep 0.1; done; '
              '"$@" cancel; "$@" start -o only; "$@" stop; "$@" shutdown; wait $p')
    status, (out, said) = run(["unshare", "-m", "sh", "-c", script, "sh", LULL])
    if status == 77 or "unshare: " in said or "sessions run here" in said:
        skip(f"no /dev/shm of its own: {said.strip()}")
    for word in ("discarded", "recording to .*only.lull", "wrote .*only.lull", "ends with its program"):
        expect(word, re.search(rf"{word} \(session mine: sleep 20, process \d+\)\n", said), said)


TESTS = (
    a_fork_while_others_hold_the_loaders_lock_does_not_hang,
    the_way_out_in_a_handler_does_not_hang,
    functions_are_the_right_ones_when_many_look_them_up,
    descriptors_may_be_closed,
    a_sandbox_is_left_alone,
    a_sandbox_made_by_seccomp_is_left_alone,
    system_calls_made_directly_are_what_they_are,
    a_small_stack_is_enough,
    arguments_may_take_all_the_room,
    what_cannot_be_read_is_the_kernels_to_refuse, orphans_come_to_init,
    a_program_of_another_c_library,
    a_program_with_address_sanitizer,
    what_python_says_of_a_crash,
    a_program_in_valgrind,
    preloaded_libraries_can_be_taken_away,
    a_library_whose_handler_of_fork_comes_first,
    an_agent_that_cannot_be_read_is_left_out,
    a_path_that_cannot_be_preloaded,
    more_threads_than_places,
    a_small_program_takes_little_shared_memory,
    full_memory_harms_only_the_recording,
    a_head_gone_wild_harms_only_the_recording,
    a_limit_of_memory_is_the_programs,
    other_limits, a_small_limit_of_the_stack,
    more_processes_than_open_files,
    a_job_that_begins_again_gets_past_what_died,
    a_stranger_in_another_root, why_an_agent_could_not_start_is_told,
    without_proc_the_agent_is_found,
    a_large_environment_passes,
    a_recorder_that_was_told_to_ignore_children,
    a_recorder_without_standard_streams,
    processes_that_count_from_one,
    without_a_report_it_says_why,
    the_only_session_is_named,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
