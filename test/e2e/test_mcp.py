#!/usr/bin/env python3
"""`lull mcp`: the protocol message by message, then by the official client, then by a script that plays an agent.

Usage: test_mcp.py BUILD [NAME...]
"""
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LULL = os.environ.get("LULL", os.path.join(BUILD, "lull"))
NPM = os.path.join(BUILD, "npm")
REPORT = os.path.join(ROOT, "examples/reports/dataloader_cpu.lull")
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}}


def environment():
    return {**os.environ, "PATH": f"{BUILD}:{BUILD}/examples:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{BUILD}/sim"}


def request(ident, method, /, **params):
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def call(ident, tool, /, **arguments):
    return request(ident, "tools/call", name=tool, arguments=arguments)


def initialize(version="2025-06-18"):
    return request(0, "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"})


def serve(messages, *options):
    """What is answered to these messages (objects, or lines as they are), by id; None is the key of errors without."""
    lines = "".join((m if isinstance(m, str) else json.dumps(m)) + "\n" for m in messages)
    done = runner.run([LULL, "mcp", *options], input=lines, env=environment())
    expect("status", done.returncode == 0, done.stderr)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        expect("the version of JSON-RPC", answer["jsonrpc"] == "2.0", answer)
    return {a["id"]: a for a in answers if "id" in a}


def text_of(answer):
    expect("a result", "result" in answer, answer)
    return "".join(c.get("text", "") for c in answer["result"]["content"])


def code_of(answer):
    return answer["error"]["code"], answer["error"]["message"]


# ---- the protocol ----

def revisions_are_negotiated():
    for asked, given in [("2024-11-05",) * 2, ("2025-03-26",) * 2, ("2025-06-18",) * 2, ("2025-11-25",) * 2,
                         ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")]:
        answer = serve([initialize(asked)])[0]["result"]
        expect(asked, answer["protocolVersion"] == given, answer)
        expect("its name", answer["serverInfo"]["name"] == "lull", answer)
        expect("no keys of a later revision", "resultType" not in answer, answer)
    answers = serve([request(1, "server/discover", _meta=MODERN), request(2, "tools/list", _meta=MODERN),
                     request(3, "tools/list", _meta={**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"})])
    expect("what is supported", answers[1]["result"]["supportedVersions"][:2] == ["2026-07-28", "2025-11-25"], answers[1])
    for number in (1, 2):
        result = answers[number]["result"]
        expect("keys of 2026-07-28", result["resultType"] == "complete" and result["ttlMs"] >= 0 and
               result["cacheScope"] == "private", result)
    expect("a revision that is not known", answers[3]["error"]["code"] == -32022 and
           "2026-07-28" in answers[3]["error"]["data"]["supported"], answers[3])


def wrong_messages_are_refused_in_words():
    cases = [('{"jsonrpc":', -32700, "not JSON: the text ends too early"),
             ('{"jsonrpc": "2.0", "id": 1, "method": "ping",}', -32700, "not JSON: a string in double quotes was expected"),
             ('"\\ud83d\x01"', -32700, "not JSON: a control character in a string"),
             ("[" * 300, -32700, "too many objects and arrays"),
             ("[]", -32600, "batches are not supported"),
             ("17", -32600, "a message has to be an object"),
             ('{"jsonrpc": "1.0", "method": "ping"}', -32600, 'jsonrpc has to be "2.0"'),
             ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, "the id has to be a string or a number"),
             ('{"jsonrpc": "2.0", "method": 4}', -32600, "a message needs a method"),
             ("x" * (5 << 20), -32700, "more than 4194304 bytes")]
    for line, code, words in cases:
        # The server goes on after each.
        answers = serve([line, request("after", "ping")])
        got = code_of(answers[None])
        expect(line[:60], got[0] == code and words in got[1], got)
        expect("the next message", answers["after"]["result"] == {}, answers)
    answers = serve([request(1, "no/such"), '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}',
                     '{"jsonrpc":"2.0","id":3,"result":{}}', '{"jsonrpc":"2.0","method":"no/such"}', "", "  ",
                     request(4, "notifications/cancelled", requestId=99), '{"jsonrpc":"2.0","id":5.5,"method":"ping"}'])
    expect("a method that is not there", code_of(answers[1]) == (-32601, "there is no method no/such"), answers[1])
    expect("params that are none", answers[2]["error"]["code"] == -32600, answers[2])
    expect("replies and notifications get no answer", sorted(answers) == [1, 2, 4, 5.5], answers)


def wrong_arguments_are_explained():
    cases = [({"name": "wy"}, "unknown tool: wy; did you mean why"),
             ({"name": 4}, "tools/call needs name"),
             ({"name": "why"}, "why needs the argument report: a report, such as report1.lull"),
             ({"name": "why", "arguments": []}, "arguments has to be an object"),
             ({"name": "why", "arguments": {"report": 3}}, "report has to be a string"),
             ({"name": "why", "arguments": {"report": ""}}, "report is empty"),
             ({"name": "stats", "arguments": {"report": "a", "format": "xml"}},
              'format cannot be "xml"; it is one of column, csv, json'),
             ({"name": "stats", "arguments": {"report": "a", "top": -1}}, "top has to be an integer of 0 or more"),
             ({"name": "stats", "arguments": {"report": "a", "steady": 1}}, "steady has to be true or false"),
             ({"name": "stats", "arguments": {"report": "a", "from_line": "x"}}, "from_line has to be an integer"),
             ({"name": "profile", "arguments": {"command": "ls"}}, "command has to be an array of strings"),
             ({"name": "profile", "arguments": {"command": []}}, "command is empty"),
             ({"name": "profile", "arguments": {"command": ["a", 1]}}, "command has to be an array of strings"),
             ({"name": "job", "arguments": {"number": 12}}, "there is no job 12; no call became a job yet")]
    for params, words in cases:
        # Before 2025-11-25 an error of the protocol, then a result that the model sees.
        old = serve([initialize(), request(1, "tools/call", **params)])[1]
        expect(f"an error for {params}", "error" in old, old)
        expect(f"{params}", old["error"]["code"] == -32602 and words in old["error"]["message"], old)
        new = serve([initialize("2025-11-25"), request(1, "tools/call", **params)])[1]
        said = new["error"]["message"] if "error" in new else text_of(new)
        expect(f"{params}", words in said and ("error" in new or new["result"]["isError"]), new)


def options_cannot_be_smuggled_in():
    answers = serve([call(1, "info", report="--schema"), call(2, "query", report=REPORT, sql="--output=/tmp/x"),
                     call(3, "stats", report=REPORT, table="step_sum --output=x"),
                     call(4, "query", report=REPORT, sql="ATTACH '/tmp/lull-smuggled' AS x")])
    expect("a report of that name", "--schema" in text_of(answers[1]) and answers[1]["result"]["isError"], answers[1])
    expect("a comment of SQL", "-o" not in text_of(answers[2]), answers[2])
    expect("a table of that name", answers[3]["result"]["isError"], answers[3])
    expect("no other database", answers[4]["result"]["isError"], answers[4])


# ---- files ----

def nothing_is_written_outside_of_the_folder():
    os.makedirs("in/sub")
    os.makedirs("out")
    os.symlink("../out", "in/link")
    os.symlink("../out/file.html", "in/page.html")
    bad = ["../out/x.html", "/tmp/x.html", "link/x.html", "page.html", "sub/../../x.html", "..", ".", "sub/", "",
           "no/such/x.html", "%q{HOME}.html", f"{os.getcwd()}/in-other.html"]
    answers = serve([call(i, "page", report=REPORT, output=name) for i, name in enumerate(bad)], "--folder", "in")
    for i, name in enumerate(bad):
        expect(f"{name} is refused", answers[i]["result"]["isError"], answers[i])
    expect("nothing is there", os.listdir("out") == [] and sorted(os.listdir("in")) == ["link", "page.html", "sub"],
           [os.listdir("out"), os.listdir("in")])
    good = ["a.html", "sub/b.html", f"{os.getcwd()}/in/sub/c.html"]
    answers = serve([call(i, "page", report=REPORT, output=name) for i, name in enumerate(good)], "--folder", "in")
    for i, name in enumerate(good):
        expect(f"{name} is written", not answers[i]["result"]["isError"], answers[i])
    expect("all are there", sorted(os.listdir("in/sub")) == ["b.html", "c.html"] and os.path.exists("in/a.html"))
    answer = serve([call(1, "page", report=REPORT, output="a.html")], "--folder", "in")[1]
    expect("a file is not replaced", answer["result"]["isError"] and "exists" in text_of(answer), answer)


def reports_outside_of_the_folder_are_no_resources():
    shutil.copy(REPORT, "a b.lull")
    answers = serve([request(1, "resources/list"), request(2, "resources/read", uri="lull://report/a%20b.lull"),
                     request(3, "resources/read", uri="lull://report/../../../../etc/passwd"),
                     request(4, "resources/read", uri=f"lull://report/{REPORT}"),
                     request(5, "resources/read", uri="lull://nothing"), request(6, "resources/read"),
                     request(7, "resources/list", cursor="x"),
                     request(8, "resources/read", uri="lull://nothing", _meta=MODERN)])
    uris = [r["uri"] for r in answers[1]["result"]["resources"]]
    expect("the list", uris == ["lull://report/a%20b.lull", "lull://schema", "lull://schema/why", "lull://causes"], uris)
    expect("the page of a report", answers[2]["result"]["contents"][0]["text"].startswith("# Why the GPU waits"), answers[2])
    for number in (3, 4, 5):
        expect("none", answers[number]["error"]["code"] == -32002, answers[number])
    expect("no uri", answers[6]["error"]["code"] == -32602, answers[6])
    expect("a cursor of somebody else", answers[7]["error"]["code"] == -32602, answers[7])
    expect("none, in 2026-07-28", answers[8]["error"]["code"] == -32602 and
           answers[8]["error"]["data"]["uri"] == "lull://nothing", answers[8])


def long_lists_of_reports_come_in_pages():
    for i in range(120):
        with open(f"r{i:03}.lull", "wb"):
            pass
    found, cursor = [], {}
    for _ in range(3):
        result = serve([request(1, "resources/list", **cursor)])[1]["result"]
        found += [r["name"] for r in result["resources"] if r["name"].startswith("r")]
        cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None
    expect("three pages", cursor is None and sorted(n for n in found if n.endswith(".lull")) ==
           [f"r{i:03}.lull" for i in range(120)], (cursor, len(found)))


def a_server_that_only_reads_has_no_tool_that_writes():
    answers = serve([request(1, "tools/list"), call(2, "profile", command=["true"]), call(3, "info", report=REPORT),
                     call(4, "try", command=["true"])],
                    "--read-only")
    names = {tool["name"] for tool in answers[1]["result"]["tools"]}
    expect("the tools", names == {"why", "diff", "gate", "stats", "query", "requests", "timeline", "info", "doctor", "job"}, names)
    for tool in answers[1]["result"]["tools"]:
        expect(tool["name"], tool["annotations"]["readOnlyHint"] == (tool["name"] != "job"), tool)
    for number in (2, 4):
        expect("profile and try", "--read-only" in answers[number]["error"]["message"], answers[number])
    expect("info", not answers[3]["result"]["isError"], answers[3])


# ---- answers ----

def answers_are_bounded_and_go_on():
    everything = runner.run([LULL, "query", REPORT, "SELECT start, dur, name FROM calls"]).stdout.splitlines()
    ask = functools.partial(call, 1, "query", report=REPORT, sql="SELECT start, dur, name FROM calls")
    first = text_of(serve([ask()])[1]).splitlines()
    expect("the first page", first[:-1] == everything[:200], first[:3])
    expect("how to go on", first[-1] == f"[lines 1 to 200 of {len(everything)}; from_line=201 continues]", first[-1])
    got, from_line = [], 1
    while from_line:
        page = text_of(serve([ask(from_line=from_line, max_lines=2000)])[1]).splitlines()
        last = page.pop() if page[-1].startswith("[lines") else ""
        from_line = int(last.split("from_line=")[1].split()[0]) if last else 0
        expect("no more than some 24,000 bytes", len("\n".join(page)) <= 24100, len("\n".join(page)))
        got += page
    expect("all pages together", got == everything, (len(got), len(everything)))
    past = text_of(serve([ask(from_line=10 ** 6)])[1])
    expect("after the end", past == f"[there are only {len(everything)} lines]\n", past)
    wide = text_of(serve([call(1, "query", report=REPORT, sql="SELECT hex(zeroblob(50000)) AS x", format="csv",
                               from_line=2)])[1])
    expect("a long line is cut", len(wide) < 25000 and "bytes more of this line" in wide, wide[-100:])


def a_long_call_becomes_a_job():
    server = runner.start([LULL, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())

    guard = threading.Timer(runner.limit(120), server.kill)  # an answer that never comes
    guard.daemon = True
    guard.start()

    def ask(message):
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        while True:
            answer = json.loads(server.stdout.readline())
            if answer.get("id") == message["id"]:
                return answer

    os.mkfifo("go")
    said = text_of(ask(call(1, "profile", command=["sh", "-c", "echo one; cat go"], output="long", wait_s=0)))
    expect("the number of a job", "profile is still running" in said and '{"number": 1}' in said, said)
    expect("others are answered", text_of(ask(call(2, "info", report=REPORT))), "")
    said = text_of(ask(call(3, "job", number=1, wait_s=0)))
    expect("it still runs", "is still running" in said, said)
    with open("go", "w", encoding="ascii") as f:
        f.write("two\n")
    answer = ask(call(4, "job", number=1))
    expect("its answer", "one\ntwo\n" in text_of(answer) and "long.lull" in text_of(answer), answer)
    expect("the same again", text_of(ask(call(5, "job", number=1))) == text_of(answer), "")
    said = text_of(ask(call(6, "job", number=1, from_line=2, max_lines=1)))
    expect("a part of it", "two\n" in said and "one\n" not in said, said)
    said = text_of(ask(call(7, "profile", command=["sleep", "600"], output="three", wait_s=0)))
    number = int(said.split('{"number": ')[1].split("}")[0])
    runner.until(lambda: "sleep" in children_of(server.pid), "the program runs")
    answer = ask(call(8, "job", number=number, cancel=True))
    expect("it was ended", answer["result"]["isError"] and "[cancelled]" in text_of(answer), answer)
    expect("nothing of it is left", "sleep" not in children_of(server.pid), children_of(server.pid))
    said = text_of(ask(call(9, "profile", command=["sh", "-c", "seq -f line%.0f 2000 >&2"], output="loud")))
    expect("the last lines of many", "...\nline" in said and "line2000\n" in said and "line1000\n" not in said, said)
    server.stdin.close()
    expect("status", server.wait(runner.limit()) == 0, server.returncode)


def children_of(pid):
    """Names of all that this process has started, and they."""
    found = []
    for child in runner.children(pid):
        try:
            with open(f"/proc/{child}/comm", encoding="utf-8") as f:
                found += [f.read().strip(), *children_of(child)]
        except OSError:
            pass
    return found


def too_many_calls_at_once_are_refused():
    messages = [call(i, "profile", command=["sleep", "600"], output=f"s{i}", wait_s=0) for i in range(17)]
    answers = serve(messages)
    expect("sixteen run", all("is still running" in text_of(answers[i]) for i in range(16)), answers)
    expect("one is too many", "16 calls are running already" in answers[16]["error"]["message"], answers[16])


def the_end_of_the_server_ends_its_jobs():
    for how in ("close", "kill"):
        server = runner.start([LULL, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        message = call(1, "profile", command=["sleep", "600"], output=how, wait_s=0 if how == "close" else 600)
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        runner.until(lambda pid=server.pid: "sleep" in children_of(pid), "the program runs")
        if how == "close":
            server.stdin.close()
        else:
            server.send_signal(signal.SIGTERM)
        expect("status", server.wait(runner.limit()) == 0, server.returncode)
        expect("the report is whole", os.path.exists(f"{how}.lull"), os.listdir("."))


# ---- others ----

def npm_script(name):
    """A script of test/npm, beside its packages."""
    if not os.path.exists(os.path.join(NPM, "package-lock.json")) or not shutil.which("node"):
        skip("the client of the Model Context Protocol did not come from npm")
    version = runner.run(["node", "--version"]).stdout.strip()
    if int(version[1:].split(".")[0]) < 20:
        skip(f"the client of the Model Context Protocol needs Node 20; this is {version}")
    path = shutil.copy(os.path.join(ROOT, "test/npm", name), NPM)
    return ["node", path]


def official_client(era):
    script = npm_script("mcp_client.mjs")
    for name, report in (("before", "dataloader_cpu"), ("after", "dataloader_cpu-fixed")):
        shutil.copy(os.path.join(ROOT, "examples/reports", report + ".lull"), name + ".lull")
    shutil.copy(os.path.join(ROOT, "test/data/kernels/strided_read.lull"), "kernel.lull")
    shutil.copy(os.path.join(ROOT, "test/corpus/data/http_embedder.lull"), "serve.lull")
    program = runner.start(["train_cuda", "--steps=1000000"], env=environment(), stdout=subprocess.DEVNULL)
    pid = [str(program.pid)] if runner.can(LULL, "attach") else []
    done = runner.run([*script, era, LULL, os.getcwd(), *pid], env=environment())
    expect("the program that was attached to goes on", program.poll() is None, program.returncode)
    expect("all that the client tries", done.returncode == 0, done.stdout + done.stderr)
    lines = done.stdout.splitlines()
    expect("the revision", lines[0] == f"revision {'2025-11-25' if era == 'legacy' else era}", lines[0])
    expect("every tool", sum(line.startswith("tool ") for line in lines) == 16 and lines[-1] == "all", lines)


def the_official_client_calls_every_tool():
    official_client("legacy")


def the_official_client_does_so_in_the_present_revision():
    official_client("2026-07-28")


def an_agent_finds_and_proves_a_fix_by_tool_calls_alone():
    script = npm_script("mcp_agent.mjs")
    os.mkdir("examples")
    shutil.copy(os.path.join(ROOT, "examples/train_cuda.c"), "examples")
    done = runner.run([*script, LULL, os.getcwd()], env=environment())
    expect("the fix is proven", done.returncode == 0, done.stdout + done.stderr)


# ---- examples/agents ----

AGENTS = os.path.join(ROOT, "examples/agents")


def read(name):
    with open(os.path.join(AGENTS, name), encoding="utf-8") as f:
        return f.read()


def configurations_start_the_server():
    found = [json.loads(read("mcp.json"))["mcpServers"]["lull"], json.loads(read("vscode-mcp.json"))["servers"]["lull"]]
    toml = dict(re.findall(r'^(command|args) = (.*)$', read("codex.toml"), re.M))
    found.append({"command": json.loads(toml["command"]), "args": json.loads(toml["args"])})
    for entry in found:
        words = [entry["command"], *(word.replace("${workspaceFolder}", os.getcwd()) for word in entry["args"])]
        done = runner.run(words, input=json.dumps(request(1, "tools/list")) + "\n", env=environment())
        expect(f"{words}", len(json.loads(done.stdout)["result"]["tools"]) == 16, done.stderr)


def what_the_pages_tell_agents_is_so():
    """Commands and options exist, and examples that need no program run."""
    shutil.copy(REPORT, "before.lull")
    shutil.copy(REPORT.replace(".lull", "-fixed.lull"), "after.lull")
    shutil.copy(os.path.join(ROOT, "test/corpus/data/http_embedder.lull"), "serve.lull")
    n_run = 0
    for name in ("SKILL.md", "llms.txt", "README.md"):
        for line in re.findall(r"`(lull [^`]*)`", read(name)):
            words = shlex.split(line.replace("REPORT", "before.lull").replace("...", "1"))
            options = runner.run([LULL, words[1], "--help"]).stdout
            expect(f"the command of {line}", options, name)
            for word in words[2:]:
                if word.startswith("--"):
                    expect(f"the option of {line}", word.split("=")[0] in options, options)
            if words[1] in ("profile", "attach", "kernel", "mcp", "lsp", "doctor") or "FOLDER" in words or "train.py" in words:
                continue
            done = runner.run([LULL, *words[1:]], env=environment())
            expect(f"{line} works", done.returncode == 0, done.stderr)
            n_run += 1
    expect("many were tried", n_run > 15, n_run)


if __name__ == "__main__":
    runner.main([revisions_are_negotiated, wrong_messages_are_refused_in_words, wrong_arguments_are_explained,
                 options_cannot_be_smuggled_in, nothing_is_written_outside_of_the_folder,
                 reports_outside_of_the_folder_are_no_resources, long_lists_of_reports_come_in_pages,
                 a_server_that_only_reads_has_no_tool_that_writes, answers_are_bounded_and_go_on,
                 a_long_call_becomes_a_job, too_many_calls_at_once_are_refused, the_end_of_the_server_ends_its_jobs,
                 the_official_client_calls_every_tool, the_official_client_does_so_in_the_present_revision,
                 an_agent_finds_and_proves_a_fix_by_tool_calls_alone, configurations_start_the_server,
                 what_the_pages_tell_agents_is_so], sys.argv[2:])
