#!/usr/bin/env python3
"""`lull lsp`, with a script that plays an editor.

Usage: test_lsp.py BUILD [NAME...]
"""
import json
import os
import subprocess
import sys
import threading
import urllib.parse

import runner
from runner import expect

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
LULL = os.environ.get("LULL", os.path.join(BUILD, "lull"))
TRACE = os.path.join(HERE, "../golden/cause/input-pipeline-sampled/trace.txt")


def uri(path):
    return "file://" + urllib.parse.quote(os.path.abspath(path))


def make_report(name, file, line=30):
    """A report whose cause is in a file, which is made, too."""
    with open(TRACE, encoding="utf-8") as f:
        text = f.read().replace("/home/u/train.py line=30", f'"{os.path.abspath(file)}" line={line}')
    with open("trace.txt", "w", encoding="utf-8") as f:
        f.write(text)
    runner.run([LULL, "text", "trace.txt", name], check=True)


def make_source(path, lines=40):
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(f"# line {i}\n" for i in range(1, lines)) + "train()\n")


class Editor:
    def __init__(self, *options, folder=None):
        self.server = runner.start([LULL, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n = 0
        self.said = []
        guard = threading.Timer(runner.limit(120), self.server.kill)  # an answer that never comes
        guard.daemon = True
        guard.start()
        if folder is not None:
            result = self.ask("initialize", processId=None, capabilities={},
                              workspaceFolders=[{"uri": uri(folder), "name": "x"}])["result"]
            expect("its name", result["serverInfo"]["name"] == "lull", result)
            expect("it wants to know what is open", result["capabilities"]["textDocumentSync"]["openClose"], result)
            self.tell("initialized")

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.server.stdout.readline().strip()):
            name, value = line.split(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(self.server.stdout.read(length))

    def tell(self, method, **params):
        self.send({"method": method, "params": params})

    def ask(self, method, **params):
        self.n += 1
        self.send({"id": self.n, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.n:
                return message
            self.said.append(message)

    def until(self, is_it):
        """The next message that is the one; those before it are thrown away."""
        while True:
            message = self.said.pop(0) if self.said else self.receive()
            if is_it(message):
                return message["params"]

    def shown(self, path, is_it):
        """Diagnostics of a file as soon as they are the ones."""
        return self.until(lambda m: m["method"] == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri(path)
                          and is_it(m["params"]["diagnostics"]))["diagnostics"]

    def open(self, path):
        with open(path, encoding="utf-8") as f:
            self.tell("textDocument/didOpen", textDocument={"uri": uri(path), "languageId": "python", "version": 1, "text": f.read()})

    def end(self, status=0):
        if not status:
            expect("shutdown", self.ask("shutdown")["result"] is None)
        self.tell("exit")
        expect("status", self.server.wait(runner.limit()) == status, self.server.returncode)


def causes_stand_beside_their_lines():
    os.mkdir("my project")
    make_source("my project/train.py")
    make_source("my project/other.py")
    make_report("my project/a.lull", "my project/train.py")
    editor = Editor(folder="my project")
    editor.open("my project/train.py")
    shown, = editor.shown("my project/train.py", len)
    expect("the line", shown["range"]["start"] == {"line": 29, "character": 0} and shown["range"]["end"]["line"] == 29, shown)
    expect("a warning of lull", (shown["severity"], shown["source"], shown["code"]) == (2, "lull", "input-pipeline"), shown)
    expect("the words", shown["message"].startswith("2.06 ms of each step (67 %): the launching thread prepares the batch"), shown)
    editor.open("my project/other.py")
    expect("nothing about another file", editor.shown("my project/other.py", lambda d: True) == [])
    editor.tell("textDocument/didClose", textDocument={"uri": uri("my project/train.py")})
    expect("nothing of a closed file", editor.shown("my project/train.py", lambda d: True) == [])
    editor.end()


def a_newer_report_replaces_the_old_one():
    make_source("train.py")
    make_report("a.lull", "train.py")
    editor = Editor(folder=".")
    editor.open("train.py")
    editor.shown("train.py", lambda d: d and d[0]["range"]["start"]["line"] == 29)
    os.mkdir("runs")
    make_report("runs/b.lull", "train.py", line=12)
    editor.shown("train.py", lambda d: len(d) == 1 and d[0]["range"]["start"]["line"] == 11)
    os.unlink("runs/b.lull")
    editor.shown("train.py", lambda d: len(d) == 1 and d[0]["range"]["start"]["line"] == 29)
    os.unlink("a.lull")
    editor.shown("train.py", lambda d: not d)
    editor.end()


def what_was_recorded_before_a_change_is_a_hint():
    make_source("train.py")
    make_report("a.lull", "train.py")
    editor = Editor(folder=".")
    editor.open("train.py")
    editor.shown("train.py", lambda d: d and d[0]["severity"] == 2)
    make_source("train.py", lines=50)
    editor.tell("textDocument/didSave", textDocument={"uri": uri("train.py")})
    shown, = editor.shown("train.py", lambda d: d and d[0]["severity"] == 4)
    expect("it says so", shown["message"].endswith("The file has changed since the recording."), shown)
    editor.end()


def one_report_can_be_named():
    make_source("train.py")
    make_report("a.lull", "train.py", line=3)
    make_report("b.lull", "train.py", line=5)
    editor = Editor("--report", "a.lull", "--stdio", folder=".")
    editor.open("train.py")
    editor.shown("train.py", lambda d: d and d[0]["range"]["start"]["line"] == 2)
    editor.end()


def a_damaged_report_is_told_and_forgotten():
    make_source("train.py")
    with open("a.lull", "wb") as f:
        f.write(b"no report at all")
    editor = Editor(folder=".")
    editor.open("train.py")
    message = editor.until(lambda m: m["method"] == "window/logMessage")
    expect("its name", "a.lull" in message["message"], message)
    make_report("b.lull", "train.py")
    editor.shown("train.py", len)
    editor.end()


def the_protocol_is_held():
    editor = Editor()
    expect("nothing before initialize", editor.ask("shutdown")["error"]["code"] == -32002)
    expect("a method that is not there", editor.ask("textDocument/hover")["error"]["code"] == -32601)
    editor.send({"id": "x", "method": "initialize", "params": {"rootUri": uri("."), "capabilities": {}}})
    expect("an older editor", "capabilities" in editor.receive()["result"])
    editor.tell("$/setTrace", value="off")
    editor.tell("textDocument/didOpen", textDocument={"uri": "untitled:Untitled-1", "languageId": "c", "version": 1, "text": ""})
    editor.tell("textDocument/didClose", textDocument={})
    expect("it goes on", "error" in editor.ask("no/such"))
    editor.end(status=1)  # exit without shutdown
    for garbage in (b"hello\r\n\r\n", b"x" * 5000, b"Content-Length: 99999999999\r\n\r\n"):
        server = runner.start([LULL, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = server.communicate(garbage, timeout=runner.limit())
        expect("garbage", server.returncode == 1 and b"is no Language Server Protocol" in err, err)
    server = runner.start([LULL, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.communicate(b"", timeout=runner.limit())
    expect("an editor that vanishes", server.returncode == 1, server.returncode)


if __name__ == "__main__":
    runner.main([causes_stand_beside_their_lines, a_newer_report_replaces_the_old_one,
                 what_was_recorded_before_a_change_is_a_hint, one_report_can_be_named,
                 a_damaged_report_is_told_and_forgotten, the_protocol_is_held], sys.argv[2:])
