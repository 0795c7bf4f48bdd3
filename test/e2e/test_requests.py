#!/usr/bin/env python3
"""Requests of servers: found without a change to them, and what became of each.

Usage: test_requests.py BUILD [NAME...]
"""
import collections
import csv
import io
import json
import os
import random
import re
import sys
import tempfile
import textwrap
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE, EXAMPLES = os.path.join(TOP, "python"), os.path.join(TOP, "examples")
PARTS = ("queue", "others", "host", "gc", "compile", "lock", "cpu", "launch", "alloc", "load", "gpu", "copy", "wait")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

# What all servers below share: a client on another thread, and the end of the program.
CLIENT = f"""
import http.client, json, os, sys, threading, time

def ask(port, path, **headers):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("GET", path, headers={{"traceparent": "{TRACE}", **headers}})
    answer = c.getresponse()
    body = answer.read().decode()
    c.close()
    return answer.status, body

def free_port():
    return int(os.environ["FREE_PORT"])

def when_up(port):
    import socket
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.01)

def client(port):
    when_up(port)
    seen = [ask(port, "/items/%d?x=%d" % (i, i)) for i in range(3)] + [ask(port, "/stream"), ask(port, "/nothing")]
    print(json.dumps(seen), flush=True)
"""

SERVERS = {
    "http.server": """
        import http.server
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args): pass
            def do_GET(self):
                if self.path == "/nothing":
                    return self.send_error(404)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"a" if self.path == "/stream" else b"item")
                if self.path == "/stream":
                    self.wfile.write(b"b")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = False  # it ends when the threads of all requests have
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client(server.server_port)
        server.shutdown()
        """,
    "wsgiref": """
        import wsgiref.simple_server
        class Handler(wsgiref.simple_server.WSGIRequestHandler):
            def log_message(self, *args): pass
        def app(environ, start_response):
            path = environ["PATH_INFO"]
            start_response("404 Not Found" if path == "/nothing" else "200 OK", [("Content-Type", "text/plain")])
            return iter([b"a", b"b"]) if path == "/stream" else [b"none" if path == "/nothing" else b"item"]
        server = wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client(server.server_port)
        server.shutdown()
        """,
    "flask": """
        import flask, logging
        from werkzeug.serving import make_server
        logging.getLogger("werkzeug").disabled = True
        app = flask.Flask("app")
        @app.route("/items/<int:item>")
        def items(item): return "item"
        @app.route("/stream")
        def stream(): return flask.Response(iter(["a", "b"]))
        server = make_server("127.0.0.1", 0, app, threaded=True)
        server.daemon_threads = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client(server.server_port)
        server.shutdown()
        """,
    "fastapi": """
        import fastapi, fastapi.responses, uvicorn
        app = fastapi.FastAPI()
        @app.get("/items/{item}")
        def items(item: int): return "item"
        @app.get("/stream")
        async def stream():
            async def parts():
                yield "a"
                yield "b"
            return fastapi.responses.StreamingResponse(parts())
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
        def work():
            client(port)
            server.should_exit = True
        threading.Thread(target=work).start()
        server.run()
        """,
    "hypercorn": """
        import asyncio, hypercorn.asyncio, hypercorn.config
        async def app(scope, receive, send):
            if scope["type"] != "http":
                return
            path = scope["path"]
            await send({"type": "http.response.start", "status": 404 if path == "/nothing" else 200, "headers": []})
            for part in (b"a", b"b") if path == "/stream" else (b"item",):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body"})
        async def main():
            config = hypercorn.config.Config()
            config.errorlog = None
            port = free_port()
            config.bind = ["127.0.0.1:%d" % port]
            done = asyncio.Event()
            server = asyncio.create_task(hypercorn.asyncio.serve(app, config, shutdown_trigger=done.wait))
            await asyncio.get_running_loop().run_in_executor(None, client, port)
            done.set()
            await server
        asyncio.run(main())
        """,
    "aiohttp": """
        import asyncio
        from aiohttp import web
        async def items(request): return web.Response(text="item")
        async def stream(request):
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"a")
            await asyncio.sleep(0)
            await answer.write(b"b")
            return answer
        async def main():
            app = web.Application()
            app.add_routes([web.get("/items/{item}", items), web.get("/stream", stream)])
            runner = web.AppRunner(app)
            await runner.setup()
            port = free_port()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            await asyncio.get_running_loop().run_in_executor(None, client, port)
            await runner.cleanup()
        asyncio.run(main())
        """,
}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-requests-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def record(self, script, *options, status=0):
        """Run a program with and without lull: it prints the same. (What it printed, the report.)"""
        file = self.path("program.py")
        with open(file, "w", encoding="utf-8") as f:
            f.write(CLIENT + textwrap.dedent(script))
        # With `import lull`, which does nothing there.
        folders = [PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "FREE_PORT": str(runner.free_port())}
        plain = runner.run([PYTHON, file], env={**env, "PYTHONPATH": os.pathsep.join(folders)})
        run = runner.run([LULL, "profile", "-q", "-f", "true", "-s", "none", "--cpuctxsw", "none", "--python-sampling=false",
                          *options, "-o", self.path("report"), PYTHON, file], env=env)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual((plain.stdout, plain.stderr), (run.stdout, run.stderr))
        return run.stdout, self.path("report.lull")

    def rows(self, report, sql):
        run = runner.run([LULL, "query", "-f", "json", report, sql])
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def answer(self, report, *options):
        run = runner.run([LULL, "requests", *options, report])
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def requests(self, report):
        """The requests as `lull requests` lists them; what their time went to adds up, and SQL says the same."""
        rows = list(csv.DictReader(io.StringIO(self.answer(report, "-f", "csv"))))
        for row in rows:
            self.assertEqual(sum(int(row[f"{part} (ns)"]) for part in PARTS), int(row["Latency (ns)"]), row)
        said = self.rows(report, "SELECT id, dur, host, wait FROM request ORDER BY start")
        self.assertEqual([[row["id"], row["dur"], row["host"], row["wait"]] for row in said],
                         [[int(row[k]) for k in ("ID", "Latency (ns)", "host (ns)", "wait (ns)")] for row in rows])
        return rows

    def marks(self, report):
        """(kind, id, text, traceparent) of each mark, by time."""
        return [tuple(row.values()) for row in self.rows(
            report, "SELECT l.category AS kind, m.payload AS id, l.name AS text, m.data AS trace FROM mark m JOIN label l ON l.id = m.label "
            "WHERE l.api = 7 ORDER BY m.start_ns, m.payload")]


class Servers(Case):
    """Each server answers as it does without us, and its requests are in the report."""

    def check(self, name):
        if runner.run([PYTHON, "-c", f"import {name}"]).returncode:
            runner.skip(f"Python has no {name}")
        _, report = self.record(SERVERS[name])
        marks = self.marks(report)
        names = [text for kind, _, text, _ in marks if kind == 1]
        self.assertEqual(names, ["GET /items/:id"] * 3 + ["GET /stream", "GET /nothing"])
        # A client may have its answer, and ask again, before the server is done with it.
        ends = {i: text for kind, i, text, _ in marks if kind == 2}
        self.assertEqual([ends[i] for kind, i, _, _ in marks if kind == 1], ["200"] * 4 + ["404"])
        self.assertEqual({trace for kind, _, _, trace in marks if kind == 1}, {TRACE})
        for ident in {m[1] for m in marks}:
            mine = [kind for kind, i, _, _ in marks if i == ident]
            self.assertEqual((mine[0], mine[-1]), (1, 2), marks)
        worked = self.rows(report, "SELECT count(DISTINCT payload) AS n FROM range r JOIN label l ON l.id = r.label WHERE l.api = 7")
        self.assertEqual(worked[0]["n"], 5)
        self.assertEqual([row["Name"] for row in self.requests(report)], names)
        said = json.loads(self.answer(report, "-f", "json"))
        self.assertEqual((said["n"], said["left_out"]["failed"], said["tail"]), (5, 0, None))
        self.check_spans(report)
        return marks

    def check_spans(self, report):
        """As OpenTelemetry: in the caller's trace, and the pieces of a request follow each other without overlap."""
        run = runner.run([LULL, "export", "-t", "otlp", "-o", "-", report])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, runner.run([LULL, "export", "-t", "otlp", "-o", "-", report]).stdout)
        (resource,) = json.loads(run.stdout)["resourceSpans"]
        spans = resource["scopeSpans"][0]["spans"]
        self.assertEqual(len({span["spanId"] for span in spans}), len(spans))
        _, trace, parent, _ = TRACE.split("-")
        self.assertEqual({span["traceId"] for span in spans}, {trace})
        servers = [span for span in spans if span["kind"] == 2]
        durations = self.rows(report, "SELECT dur, gpu FROM request ORDER BY start")
        self.assertEqual([span["parentSpanId"] for span in servers], [parent] * 5)
        self.assertEqual([int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]) for s in servers], [row["dur"] for row in durations])
        for server in servers:
            at = int(server["startTimeUnixNano"])
            inside = [span for span in spans if span.get("parentSpanId") == server["spanId"]]
            self.assertTrue(inside)
            for span in inside:
                self.assertLessEqual(at, int(span["startTimeUnixNano"]))
                at = int(span["endTimeUnixNano"])
                self.assertIn(span["name"], PARTS)
            self.assertLessEqual(at, int(server["endTimeUnixNano"]))

    def test_http_server(self):
        self.check("http.server")

    def test_wsgiref(self):
        self.check("wsgiref")

    def check_parts(self, server):
        """As check(), and its answer in two parts has two."""
        marks = self.check(server)
        streamed = [i for kind, i, text, _ in marks if text == "GET /stream"][0]
        self.assertEqual(sum(kind == 4 and i == streamed for kind, i, _, _ in marks), 2)

    def test_flask(self):
        self.check_parts("flask")

    def test_fastapi_with_uvicorn(self):
        self.check_parts("fastapi")

    def test_aiohttp(self):
        self.check_parts("aiohttp")

    def test_hypercorn(self):
        self.check_parts("hypercorn")


# A service without generated code: messages are bytes.
GRPC = f"""
    import concurrent.futures, grpc, threading, time
    HEAD = (("traceparent", "{TRACE}"),)
    def methods(*functions):
        make = (grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler, grpc.unary_unary_rpc_method_handler,
                grpc.unary_unary_rpc_method_handler)
        named = zip(("One", "Many", "Refuse", "Break"), functions, make)
        return (grpc.method_handlers_generic_handler("test.Model", {{n: m(f) for n, f, m in named}}),)
    def said(call):
        try:
            return call()
        except grpc.RpcError as error:
            return error.code().name
    def ask_all(port):
        with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
            for name in ("One", "One", "Refuse", "Break"):
                print(name, said(lambda: channel.unary_unary("/test.Model/" + name)(b"x", metadata=HEAD)))
            print(list(channel.unary_stream("/test.Model/Many")(b"x", metadata=HEAD)))
    """


class Grpc(Case):
    """Servers of gRPC, by threads and by asyncio, that know nothing of us."""

    def check(self, script):
        if runner.run([PYTHON, "-c", "import grpc"]).returncode:
            runner.skip("Python has no grpc")
        out, report = self.record(textwrap.dedent(GRPC) + textwrap.dedent(script))
        self.assertEqual(out, "One b'one'\nOne b'one'\nRefuse NOT_FOUND\nBreak UNKNOWN\n[b'a', b'b', b'c']\n")
        marks = self.marks(report)
        names = {i: text for kind, i, text, _ in marks if kind == 1}
        ends = {i: text for kind, i, text, _ in marks if kind == 2}
        self.assertEqual([(names[i], ends[i]) for i in sorted(names)],
                         [("/test.Model/One", "OK")] * 2 + [("/test.Model/Refuse", "NOT_FOUND"), ("/test.Model/Break", "failed"),
                                                             ("/test.Model/Many", "OK")])
        self.assertEqual({trace for kind, _, _, trace in marks if kind == 1}, {TRACE})
        self.assertEqual([(row["Tokens"], int(row["wait (ns)"]) > 0.002e9) for row in self.requests(report)][-1:], [("3", True)])

    def test_threads(self):
        self.check("""
            def one(message, context): return b"one"
            def many(message, context):
                for part in (b"a", b"b", b"c"):
                    time.sleep(0.001)
                    yield part
            def refuse(message, context): context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
            def fail(message, context): raise ValueError("of the program")
            import logging
            logging.disable(logging.CRITICAL)
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
            server.add_generic_rpc_handlers(methods(one, many, refuse, fail))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            ask_all(port)
            server.stop(None).wait()
            """)

    def test_a_client_that_waits_no_longer(self):
        """Its answer is one to nobody, though the function returns it as any other."""
        if runner.run([PYTHON, "-c", "import grpc"]).returncode:
            runner.skip("Python has no grpc")
        out, report = self.record(textwrap.dedent(GRPC) + textwrap.dedent("""
            came, left, answered = threading.Event(), threading.Event(), threading.Event()
            def one(message, context):
                context.add_callback(left.set)
                came.set()
                left.wait(60)
                answered.set()
                return b"late"
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
            server.add_generic_rpc_handlers(methods(one))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
                call = channel.unary_unary("/test.Model/One").future(b"x")
                came.wait(60)
                call.cancel()
                print(answered.wait(60))
            server.stop(None).wait()
            """))
        self.assertEqual(out, "True\n")
        self.assertEqual([row["status"] for row in self.rows(report, "SELECT status FROM request")], ["hung up"])

    def test_parts_that_are_no_iterator(self):
        """Asked as gRPC asks; what is no iterator at all is refused, and nothing is printed."""
        self.record("""
            import sys
            hooks = sys.modules.get("_lull_requests")
            class Steps:
                left = [1, 2]
                def __next__(self):
                    if not self.left: raise StopIteration
                    return self.left.pop()
            if hooks is not None:
                grpc = hooks._beside("_requests_grpc")
                class Context:
                    def invocation_metadata(self): return ()
                many = grpc._of_threads(lambda message, context: message, "many", 0, True)
                parts = many(Steps(), Context())
                assert [next(parts), next(parts), next(parts, None)] == [2, 1, None]
                try:
                    many(3, Context())
                except TypeError:
                    pass
                else:
                    raise AssertionError("it is no iterator")
            """)

    def test_asyncio(self):
        self.check("""
            import asyncio, grpc.aio, logging
            logging.disable(logging.CRITICAL)
            async def one(message, context): return b"one"
            async def many(message, context):
                for part in (b"a", b"b", b"c"):
                    await asyncio.sleep(0.02)  # a loop that gets no CPU before it waits, waits for less
                    yield part
            async def refuse(message, context): await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
            async def fail(message, context): raise ValueError("of the program")
            async def main():
                server = grpc.aio.server()
                server.add_generic_rpc_handlers(methods(one, many, refuse, fail))
                port = server.add_insecure_port("127.0.0.1:0")
                await server.start()
                await asyncio.get_running_loop().run_in_executor(None, ask_all, port)
                await server.stop(None)
            asyncio.run(main())
            """)


# Exits with 1 where struct tcp_info does not say when the last data came.
KERNEL_TELLS = """
import socket, struct, sys, time
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
    client.sendall(b"x")
    time.sleep(0.1)
    taken, _ = server.accept()
    info = taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 56)
    sys.exit(struct.unpack_from("=I", info, 52)[0] < 50)
"""


# Whether the kernel stamps data that come in while somebody wants that: is_stamped() of a program.
STAMPS = """
import socket
def is_stamped():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        taken, _ = server.accept()
        with taken:
            client.sendall(b"x")
            taken.recvmsg(1, 0, socket.MSG_PEEK)
            taken.setsockopt(socket.SOL_SOCKET, 37, 1 << 4)  # SO_TIMESTAMPING
            return bool(taken.recvmsg(1, 512, socket.MSG_PEEK)[1])

def when_stamped():
    while "LULL_SESSION" in os.environ and not is_stamped():
        time.sleep(0.001)
"""
KERNEL_STAMPS = STAMPS + """
import sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
    for i in range(100):
        if is_stamped():
            sys.exit(0)
        time.sleep(0.01)
sys.exit(1)
"""


class Arrival(Case):
    """A request begins when its first data came, wherever the server was then, to less than a tick of the kernel."""

    def setUp(self):
        super().setUp()
        if runner.run([PYTHON, "-c", KERNEL_STAMPS]).returncode:
            runner.skip("the kernel does not stamp what comes in")

    def check(self, script, n, *options):
        """Each request begins between its marks `before` and `after`, which are made around sending its head."""
        _, report = self.record(STAMPS + textwrap.dedent(script), *options)
        marks = {row["name"]: row["at"] for row in self.rows(
            report, "SELECT m.start_ns AS at, l.name AS name FROM mark m JOIN label l ON l.id = m.label")}
        rows = self.requests(report)
        self.assertEqual(len(rows), n)
        for row in rows:
            path = row["Name"].split()[1]
            self.assertLessEqual(marks["before " + path], int(row["Start (ns)"]), row)
            self.assertLessEqual(int(row["Start (ns)"]), marks["after " + path], row)
            # What it waited for is in it, and its parts are all of it.
            self.assertEqual(sum(int(row[part + " (ns)"]) for part in PARTS), int(row["Latency (ns)"]), row)

    SENDER = """
        import lull
        def send(connection, path, data):
            lull.mark("before " + path)
            connection.sendall(data)
            lull.mark("after " + path)
        """

    def test_before_its_connection_is_accepted(self):
        self.check(textwrap.dedent(self.SENDER) + textwrap.dedent("""
            import http.server
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    self.send_response(200)
                    self.end_headers()
            sent = threading.Semaphore(0)
            class Server(http.server.ThreadingHTTPServer):
                def get_request(self):
                    sent.acquire()
                    return super().get_request()
            server = Server(("127.0.0.1", 0), Handler)
            when_stamped()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for path in "/a", "/b":
                with socket.create_connection(server.server_address) as s:
                    send(s, path, b"GET %s HTTP/1.0\\r\\n\\r\\n" % path.encode())
                    sent.release()
                    while s.recv(1000): pass
            server.shutdown()
            """), 2)

    def test_on_a_connection_that_stays_open(self):
        """The body of a request comes later, and so does the next request; the loop is busy meanwhile."""
        if runner.run([PYTHON, "-c", "import aiohttp"]).returncode:
            runner.skip("Python has no aiohttp")
        self.check(textwrap.dedent(self.SENDER) + textwrap.dedent("""
            import asyncio
            from aiohttp import web
            done, go, has_head = threading.Event(), threading.Event(), threading.Event()
            async def take(request):
                has_head.set()
                await request.read()
                asyncio.get_running_loop().call_later(0.002, lambda: (done.set(), go.wait(), go.clear()))
                return web.Response(text="ok")
            def client(port, loop, stop):
                with socket.create_connection(("127.0.0.1", port)) as s:
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for path in "/a", "/b", "/c":
                        head = "POST %s HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n" % path
                        send(s, path, head.encode())
                        if path != "/a":
                            go.set()  # the loop goes on, which the last request blocks
                        has_head.wait()
                        has_head.clear()
                        s.sendall(b"x")
                        time.sleep(0.003)
                        s.sendall(b"y")
                        s.recv(10000)
                        done.wait()
                        done.clear()
                    go.set()
                loop.call_soon_threadsafe(stop.set)
            async def main():
                app = web.Application()
                app.router.add_post("/{name}", take)
                runner = web.AppRunner(app)
                await runner.setup()
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                when_stamped()
                stop, loop = asyncio.Event(), asyncio.get_running_loop()
                port = site._server.sockets[0].getsockname()[1]
                threading.Thread(target=client, args=(port, loop, stop)).start()
                await stop.wait()
                await runner.cleanup()
            asyncio.run(main())
            """), 3)

    def test_a_request_that_the_program_marks(self):
        self.check(textwrap.dedent(self.SENDER) + textwrap.dedent("""
            import asyncio
            sent = threading.Event()
            async def answer(reader, writer):
                await reader.readline()
                with lull.request("GET /a"):
                    writer.write(b"x")
                    writer.close()
            def client(port):
                with socket.create_connection(("127.0.0.1", port)) as s:
                    send(s, "/a", b"a\\n")
                    sent.set()
                    while s.recv(1000): pass
            async def main():
                server = await asyncio.start_server(answer, "127.0.0.1", 0)
                when_stamped()
                loop = asyncio.get_running_loop()
                asked = loop.run_in_executor(None, client, server.sockets[0].getsockname()[1])
                sent.wait()  # the loop accepts later
                await asked
                server.close()
            asyncio.run(main())
            """), 1)

    def test_options_of_a_socket_stay_what_they_were(self):
        self.record(STAMPS + textwrap.dedent("""
            import http.server
            ours = socket.SOL_SOCKET, 37  # SO_TIMESTAMPING
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    print(self.connection.getsockopt(*ours), self.connection.getsockopt(socket.SOL_SOCKET, 35))
                    self.send_response(200)
                    self.end_headers()
            class Server(http.server.ThreadingHTTPServer):
                def get_request(self):
                    connection, addr = super().get_request()
                    for option, value in wanted.items():
                        connection.setsockopt(socket.SOL_SOCKET, option, value)
                    return connection, addr
            server = Server(("127.0.0.1", 0), Handler)
            when_stamped()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for wanted in {}, {37: 1 << 4 | 1 << 3}, {35: 1}:
                print(ask(server.server_port, "/"))
            server.shutdown()
            """))


class Latency(Case):
    """What is said of a request against what the program and its client measured."""

    def test_between_handler_and_client(self):
        out, report = self.record("""
            import http.server
            inside, outside = [], []
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    start = time.monotonic_ns()
                    time.sleep(0.003)
                    end = time.monotonic_ns()
                    sum(range(100000))
                    inside.append((time.monotonic_ns() - start, end - start))
                    self.send_response(200)
                    self.end_headers()
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for i in range(5):
                start = time.monotonic_ns()
                ask(server.server_port, "/")
                outside.append(time.monotonic_ns() - start)
            server.shutdown()
            server.server_close()
            if os.environ.get("LULL_SESSION"):
                with open(__file__ + ".json", "w") as f:
                    json.dump([inside, outside], f)
            """)
        with open(self.path("program.py.json"), encoding="utf-8") as f:
            inside, outside = json.load(f)
        rows = self.requests(report)
        self.assertEqual(len(rows), 5)
        for row, (least, slept), most in zip(rows, inside, outside):
            self.assertLess(least, int(row["Latency (ns)"]), row)
            self.assertLess(int(row["Latency (ns)"]), most, row)
            # The program's sleep is a wait, and nothing else is as long.
            self.assertLess(0.003e9, int(row["wait (ns)"]) + int(row["lock (ns)"]), (row, slept))

    def test_an_answer_that_ends_with_its_connection(self):
        """Without a length in its head, the client waits until the connection is shut down."""
        _, report = self.record("""
            import http.server, lull
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    self.send_response(204 if self.path == "/none" else 200)
                    if self.path == "/length":
                        self.send_header("Content-Length", "1")
                    self.end_headers()
                    if self.path != "/none":
                        self.wfile.write(b"x")
                    lull.mark("written " + self.path)
                do_HEAD = do_GET
                def finish(self):
                    super().finish()
                    lull.mark("finished " + self.path)
            class Own(http.server.ThreadingHTTPServer):
                def shutdown_request(self, request):
                    request.close()
            for kind, paths in (http.server.ThreadingHTTPServer, ("/open", "/length", "/none")), (Own, ("/own",)):
                server = kind(("127.0.0.1", 0), Handler)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                for path in paths:
                    ask(server.server_port, path)
                server.shutdown()
                server.server_close()
            """)
        marks = {row["name"]: row["at"] for row in self.rows(
            report, "SELECT m.start_ns AS at, l.name AS name FROM mark m JOIN label l ON l.id = m.label")}
        rows = {row["Name"]: int(row["Start (ns)"]) + int(row["Latency (ns)"]) for row in self.requests(report)}
        self.assertEqual(sorted(rows), ["GET /length", "GET /none", "GET /open", "GET /own"])
        for name, end in rows.items():
            path = name.split()[1]
            self.assertLessEqual(marks["written " + path], end, name)
            if path == "/open":
                self.assertLessEqual(marks["finished " + path], end, name)
            else:
                self.assertLessEqual(end, marks["finished " + path], name)

    PIPELINED = """
        def client(port):
            import socket
            when_up(port)
            with socket.create_connection(("127.0.0.1", port), timeout=60) as c:
                one = b"GET /items/1 HTTP/1.1\\r\\nHost: x\\r\\n"
                c.sendall(one + b"\\r\\n" + one + b"Connection: close\\r\\n\\r\\n")
                got = b""
                while part := c.recv(65536):
                    got += part
            print(got.count(b"HTTP/1.1 200"), flush=True)
        """

    def check_pipelined(self, module, server):
        """Two requests in one piece arrive at the same moment, and the second waits for the first."""
        if runner.run([PYTHON, "-c", "import " + module]).returncode:
            runner.skip("Python has no " + module)
        out, report = self.record(textwrap.dedent(self.PIPELINED) + textwrap.dedent(SERVERS[server]))
        self.assertEqual(out, "2\n")
        first, second = self.requests(report)
        self.assertEqual(first["Start (ns)"], second["Start (ns)"])
        self.assertLess(int(first["Latency (ns)"]), int(second["Latency (ns)"]))

    def test_pipelined_requests_of_uvicorn(self):
        self.check_pipelined("uvicorn", "fastapi")

    def test_pipelined_requests_of_aiohttp(self):
        self.check_pipelined("aiohttp", "aiohttp")

    def test_pipelined_requests_that_came_while_the_loop_was_busy(self):
        if runner.run([PYTHON, "-c", "import aiohttp"]).returncode:
            runner.skip("Python has no aiohttp")
        plain = "async def items(request): return"
        self.assertIn(plain, SERVERS["aiohttp"])
        server = textwrap.dedent(SERVERS["aiohttp"]).replace(plain, "async def items(request): work(request); return")
        client = """
            import socket, threading
            is_busy = threading.Event()
            def work(request):
                if request.path == "/items/busy":
                    is_busy.set()
                    time.sleep(0.05)
                time.sleep(0.007)
            def client(port):
                when_up(port)
                threading.Thread(target=ask, args=(port, "/items/busy")).start()
                with socket.create_connection(("127.0.0.1", port), timeout=60) as c:
                    is_busy.wait()
                    one = b"GET /items/1 HTTP/1.1\\r\\nHost: x\\r\\n"
                    c.sendall((one + b"\\r\\n") * 5 + one + b"Connection: close\\r\\n\\r\\n")
                    got = b""
                    while part := c.recv(65536):
                        got += part
                print(got.count(b"HTTP/1.1 200"), flush=True)
            """
        out, report = self.record(textwrap.dedent(client) + server)
        self.assertEqual(out, "6\n")
        starts = sorted(collections.Counter(row["Start (ns)"] for row in self.requests(report)).values())
        self.assertEqual(starts, [1, 6])

    def test_an_answer_ends_before_what_is_done_in_the_background(self):
        if runner.run([PYTHON, "-c", "import fastapi, uvicorn"]).returncode:
            runner.skip("Python has no fastapi with uvicorn")
        out, report = self.record("""
            import fastapi, lull, uvicorn
            app = fastapi.FastAPI()
            @app.get("/items/{item}")
            def items(item: int, tasks: fastapi.BackgroundTasks):
                tasks.add_task(lull.mark, "background")
                return "item"
            port = free_port()
            server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
            def work():
                when_up(port)
                print(ask(port, "/items/1")[0], flush=True)
                server.should_exit = True
            threading.Thread(target=work).start()
            server.run()
            """)
        self.assertEqual(out, "200\n")
        (row,) = self.requests(report)
        self.assertEqual(row["End"], "200")
        (mark,) = self.rows(report, "SELECT m.start_ns AS at FROM mark m JOIN label l ON l.id = m.label WHERE l.name = 'background'")
        self.assertLessEqual(int(row["Start (ns)"]) + int(row["Latency (ns)"]), mark["at"])

    def test_a_request_waits_in_its_socket(self):
        """It comes while the event loop is blocked: it begins before the request that blocks the loop ends."""
        if runner.run([PYTHON, "-c", "import aiohttp"]).returncode:
            runner.skip("Python has no aiohttp")
        if runner.run([PYTHON, "-c", KERNEL_TELLS]).returncode:
            runner.skip("the kernel does not tell when data of a socket came")
        _, report = self.record("""
            import asyncio, socket
            from aiohttp import web
            here, sent = threading.Event(), threading.Event()
            async def block(request):
                here.set()
                sent.wait()
                time.sleep(0.06)
                return web.Response(text="first")
            async def quick(request): return web.Response(text="second")
            def second(port):
                here.wait()
                with socket.create_connection(("127.0.0.1", port)) as s:
                    s.sendall(b"GET /quick HTTP/1.0\\r\\n\\r\\n")
                    sent.set()
                    while s.recv(1000): pass
            def both(port):
                thread = threading.Thread(target=second, args=(port,))
                thread.start()
                ask(port, "/block")
                thread.join()
            async def main():
                app = web.Application()
                app.add_routes([web.get("/block", block), web.get("/quick", quick)])
                runner = web.AppRunner(app)
                await runner.setup()
                port = free_port()
                await web.TCPSite(runner, "127.0.0.1", port).start()
                await asyncio.get_running_loop().run_in_executor(None, both, port)
                await runner.cleanup()
            asyncio.run(main())
            """)
        rows = {row["Name"]: row for row in self.requests(report)}
        first, second = rows["GET /block"], rows["GET /quick"]
        self.assertLess(int(second["Start (ns)"]), int(first["Start (ns)"]) + int(first["Latency (ns)"]), rows)
        # The kernel tells when data came by its ticks: two of them are 20 ms at most.
        self.assertGreater(int(second["queue (ns)"]) + int(second["others (ns)"]), 0.03e9, rows)

    def test_marks_in_the_task_of_a_connection(self):
        """They begin when the data came, which wait behind another request; not if the task waited for something else."""
        _, report = self.record("""
            import asyncio, lull, socket
            blocked, sent = threading.Event(), threading.Event()
            async def serve(reader, writer):
                word = (await reader.readline()).decode().strip()
                if word == "later":
                    await asyncio.sleep(0.05)
                lull.mark("before " + word)
                with lull.request(word):
                    if word == "block":
                        blocked.set()
                        sent.wait()
                    elif word != "later":
                        time.sleep(0.02)
                writer.write(b"done\\n")
                writer.close()
            def ask_all(port):
                def connect(word):
                    s = socket.create_connection(("127.0.0.1", port))
                    s.sendall(word)
                    return s
                first = connect(b"block\\n")
                blocked.wait()
                others = [connect(b"one\\n"), connect(b"two\\n")]
                sent.set()
                for s in [first] + others + [connect(b"later\\n")]:
                    while s.recv(1000): pass
                    s.close()
            async def main():
                server = await asyncio.start_server(serve, "127.0.0.1", 0)
                port = server.sockets[0].getsockname()[1]
                await asyncio.get_running_loop().run_in_executor(None, ask_all, port)
                server.close()
            asyncio.run(main())
            """)
        rows = {row["Name"]: row for row in self.requests(report)}
        one, two = sorted(((int(rows[n]["Start (ns)"]), int(rows[n]["Latency (ns)"])) for n in ("one", "two")), key=sum)
        self.assertLess(two[0], sum(one) - 15_000_000, rows)  # while the other one slept, or before
        before = self.rows(report, "SELECT m.start_ns AS at FROM mark m JOIN label l ON l.id = m.label WHERE l.name = 'before later'")[0]["at"]
        self.assertGreaterEqual(int(rows["later"]["Start (ns)"]), before, rows)

    def test_a_request_waits_for_its_thread(self):
        """It is there before its thread: it begins when its connection is taken."""
        _, report = self.record("""
            import http.server, socket
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    self.send_response(200)
                    self.end_headers()
            sent = threading.Semaphore(0)
            class Server(http.server.ThreadingHTTPServer):
                def process_request(self, *args):
                    sent.acquire()
                    time.sleep(0.02)
                    super().process_request(*args)
            server = Server(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for i in range(3):
                with socket.create_connection(server.server_address) as s:
                    s.sendall(b"GET /%d HTTP/1.0\\r\\n\\r\\n" % i)
                    sent.release()
                    while s.recv(1000): pass
            server.shutdown()
            """)
        rows = self.requests(report)
        self.assertEqual([row["Name"] for row in rows], ["GET /:id"] * 3)
        for row in rows:
            self.assertLess(0.02e9, int(row["Latency (ns)"]), row)

    def test_a_thread_for_each_request(self):
        """Later threads get what earlier ones had of the agent's memory, and name all that they do."""
        self.record("""
            import http.server, lull
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    with lull.range(self.path):
                        self.send_response(200)
                    self.end_headers()
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            lull.start()
            for i in range(40):
                ask(server.server_port, "/before%d" % (i % 4))
                time.sleep(0.05)
            lull.stop()
            while "LULL_SESSION" in os.environ and not os.path.exists("REPORT"):  # then the recorder is ready again
                time.sleep(0.01)
            lull.start()
            for i in range(8):
                ask(server.server_port, "/after")
            lull.stop()
            server.shutdown()
            """.replace("REPORT", self.path("report.lull")), "--capture-range=lull", "--capture-range-end=repeat")
        last = self.path("report-2.lull")
        self.assertEqual([row["Name"] for row in self.requests(last)], ["GET /after"] * 8)
        names = self.rows(last, "SELECT DISTINCT l.name AS name FROM range r JOIN label l ON l.id = r.label WHERE l.api = 2")
        self.assertEqual([row["name"] for row in names], ["/after"])

    def test_a_recording_that_starts_and_ends_in_requests(self):
        """One ends in it, one begins in it, one does both, and two are not in it at all."""
        _, report = self.record("""
            import lull
            here, gone = {}, {}
            def handle(name, starts, ends):
                starts.wait()
                with lull.request(name):
                    here[name].set()
                    ends.wait()
                gone[name].set()
            events = [threading.Event() for i in range(4)]
            plan = {"before": (0, 1), "across": (0, 3), "inside": (1, 2), "after": (1, 3), "never": (3, 3)}
            for name in plan:
                here[name], gone[name] = threading.Event(), threading.Event()
            threads = [threading.Thread(target=handle, args=(n, events[a], events[b])) for n, (a, b) in plan.items()]
            for t in threads: t.start()
            def step(number, *waits):
                events[number].set()
                for w in waits: w.wait()
            step(0, here["before"], here["across"])
            lull.start()
            step(1, here["inside"], here["after"], gone["before"])
            step(2, gone["inside"])
            lull.stop()
            step(3)
            for t in threads: t.join()
            """, "--capture-range=lull", "--capture-range-end=stop")
        self.assertEqual([row["Name"] for row in self.requests(report)], ["inside"])
        left = json.loads(self.answer(report, "-f", "json"))["left_out"]
        self.assertEqual((left["began_before"], left["did_not_end"]), (1, 1))


class Identity(Case):
    """Code that runs in pieces and on other threads keeps its request."""

    def owners(self, report):
        """For each range of the program: the names of the requests whose work it is part of."""
        rows = self.rows(report, """
            SELECT l.name AS name, (SELECT group_concat(DISTINCT w.payload) FROM range w JOIN label k ON k.id = w.label
                                    WHERE k.api = 7 AND w.lane = r.lane AND w.start_ns <= r.start_ns
                                    AND w.start_ns + w.dur_ns >= r.start_ns + r.dur_ns) AS owners
            FROM range r JOIN label l ON l.id = r.label WHERE l.api = 2""")
        return sorted((row["name"], row["owners"]) for row in rows)

    def test_tasks_and_pools(self):
        _, report = self.record("""
            import asyncio, concurrent.futures, lull
            pool = concurrent.futures.ThreadPoolExecutor(3)
            def piece(name):
                with lull.record(name):
                    time.sleep(0.001)
            async def child(i, event):
                await event.wait()
                piece("task %d" % i)
            async def handle(i, all_here):
                with lull.request("number %d" % i):
                    event = asyncio.Event()
                    task = asyncio.create_task(child(i, event))
                    await all_here.wait()
                    piece("itself %d" % i)
                    await asyncio.to_thread(piece, "thread %d" % i)
                    await asyncio.get_running_loop().run_in_executor(pool, piece, "pool %d" % i)
                    asyncio.get_running_loop().call_soon(piece, "callback %d" % i)
                    event.set()
                    await task
                piece("after %d" % i)
            async def main():
                all_here = asyncio.Event()
                tasks = [asyncio.create_task(handle(i, all_here)) for i in (1, 2, 3)]
                await asyncio.sleep(0)
                piece("no request 0")
                all_here.set()
                await asyncio.gather(*tasks)
                piece("no request 4")
            asyncio.run(main())
            """)
        expected = [(f"{what} {i}", str(i)) for i in (1, 2, 3) for what in ("callback", "itself", "pool", "task", "thread")]
        expected += [(name, "") for name in ("after 1", "after 2", "after 3", "no request 0", "no request 4")]
        self.assertEqual(self.owners(report), sorted(expected, key=lambda e: e[0]))

    def test_batches(self):
        _, report = self.record("""
            import lull, queue
            todo, done = queue.Queue(), threading.Event()
            def engine():
                batch = [todo.get() for i in range(3)]
                with lull.serve(*batch):
                    with lull.record("batch"):
                        time.sleep(0.001)
                    for r in batch:
                        lull.token(r)
                with lull.record("alone"):
                    pass
                done.set()
            def handle():
                with lull.request("generate"):
                    todo.put(lull.current_request())
                    done.wait()
            threads = [threading.Thread(target=f) for f in (engine, handle, handle, handle)]
            for t in threads: t.start()
            for t in threads: t.join()
            """)
        owners = dict(self.owners(report))
        self.assertEqual(owners["alone"], "")
        self.assertEqual(sorted(owners["batch"].split(",")), ["1", "2", "3"])
        self.assertEqual(sorted(i for kind, i, _, _ in self.marks(report) if kind == 3), [1, 2, 3])


    def test_queues_of_threads(self):
        """Who takes an item works for the request that put it there, until that has its result."""
        _, report = self.record("""
            import concurrent.futures, lull, queue
            todo, pool = queue.Queue(), concurrent.futures.ThreadPoolExecutor(1)
            def piece(name):
                with lull.record(name):
                    time.sleep(0.001)
            def engine():
                for step in ("first", "second"):
                    batch = [todo.get()]
                    while len(batch) < 2:
                        try:
                            batch.append(todo.get(timeout=1000))
                        except queue.Empty:
                            pass
                    piece(step)
                    pool.submit(piece, step + " in pool").result()
                    for name, future in batch:
                        future.set_result(name)
                    piece("after " + step)
                todo.get()
                piece("of nobody")
            def handle(name):
                with lull.request(name):
                    future = concurrent.futures.Future()
                    todo.put((name, future))
                    assert future.result() == name
                    thread = threading.Thread(target=piece, args=("thread of " + name,))
                    thread.start()
                    thread.join()
            worker = threading.Thread(target=engine)
            worker.start()
            for names in (("a", "b"), ("c", "d")):
                threads = [threading.Thread(target=handle, args=(n,)) for n in names]
                for t in threads: t.start()
                for t in threads: t.join()
            todo.put("no request")
            worker.join()
            """)
        ids = {text: str(i) for kind, i, text, _ in self.marks(report) if kind == 1}
        owners = {name: sorted(of.split(",")) for name, of in self.owners(report)}
        expected = {"first": "ab", "first in pool": "ab", "second": "cd", "second in pool": "cd", "after first": "", "after second": "", "of nobody": "",
                    **{f"thread of {n}": n for n in "abcd"}}
        self.assertEqual(owners, {name: sorted(ids[n] for n in of) or [""] for name, of in expected.items()})

    def test_threads_of_requests_are_not_kept(self):
        """They are as they were when they run, and go with the last that names them."""
        out, _ = self.record("""
            import gc, lull, threading, weakref
            gc.disable()
            def wait_for(gone):
                for _ in range(6000):
                    if gone() is None:
                        return True
                    time.sleep(0.01)
                return False
            def ran(thread):
                thread.start()
                thread.join()
                return "run" in thread.__dict__, weakref.ref(thread)
            class Own(threading.Thread):
                def run(self): print("of its class")
            def own():
                thread = threading.Thread()
                thread.run = lambda: print("of its own")
                return thread
            with lull.request("a"):
                for make in (lambda: threading.Thread(target=print, args=("plain",)), Own, own):
                    has_run, gone = ran(make())
                    print(has_run, wait_for(gone))
            """)
        self.assertEqual(out, "plain\nFalse True\nof its class\nFalse True\nof its own\nTrue True\n")

    def test_queues_of_tasks(self):
        _, report = self.record("""
            import asyncio, lull
            def piece(name):
                with lull.record(name):
                    time.sleep(0.001)
            async def engine(todo):
                for step in ("first", "second"):
                    batch = [await todo.get()]
                    while len(batch) < 2:
                        batch.append(await asyncio.wait_for(todo.get(), 1000))
                    piece(step)
                    await asyncio.to_thread(piece, step + " in pool")
                    for answers, name in batch:
                        await answers.put(name)
                await todo.get()
                piece("of nobody")
            async def handle(name, todo):
                with lull.request(name):
                    answers = asyncio.Queue()
                    await todo.put((answers, name))
                    assert await answers.get() == name
                    piece("end of " + name)
            async def main():
                todo = asyncio.Queue()
                task = asyncio.create_task(engine(todo))
                for names in (("a", "b"), ("c", "d")):
                    await asyncio.gather(*(handle(n, todo) for n in names))
                await todo.put("no request")
                await task
            asyncio.run(main())
            """)
        ids = {text: str(i) for kind, i, text, _ in self.marks(report) if kind == 1}
        owners = {name: sorted(of.split(",")) for name, of in self.owners(report)}
        expected = {"first": "ab", "first in pool": "ab", "second": "cd", "second in pool": "cd", "of nobody": "", **{f"end of {n}": n for n in "abcd"}}
        self.assertEqual(owners, {name: sorted(ids[n] for n in of) or [""] for name, of in expected.items()})


class Trouble(Case):
    """How requests end that do not end well; and nothing of ours changes what the program does."""

    def endings(self, report):
        return [text for kind, _, text, _ in self.marks(report) if kind == 2]

    def test_a_handler_that_is_its_own_server(self):
        """It has all methods itself and calls none of those it inherits, as that of eventlet; also two requests in one call."""
        _, report = self.record("""
            import http.server, socket
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                n_together = 1
                def __init__(self, connection):
                    self.connection = self.request = connection
                    self.setup()
                    while not self.close_connection:
                        self.handle_one_request()
                    self.finish()
                def setup(self):
                    self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
                    self.close_connection = False
                def handle_one_request(self):
                    for _ in range(self.n_together):
                        self.raw_requestline = self.rfile.readline(1000)
                        if not self.raw_requestline:
                            self.close_connection = True
                            return
                        if self.parse_request():
                            self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
                            self.wfile.flush()
                def finish(self):
                    self.wfile.close()
                    self.rfile.close()
            class Pair(Handler, metaclass=type):
                n_together = 2
            def ask_all(address):
                for _ in range(2):
                    c = http.client.HTTPConnection(*address, timeout=60)
                    for i in range(3):
                        c.request("GET", "/kept/%d" % i)
                        assert c.getresponse().read() == b"ok"
                    c.close()
            listener = socket.create_server(("127.0.0.1", 0))
            asking = threading.Thread(target=ask_all, args=(listener.getsockname(),))
            asking.start()
            for kind in Handler, Pair:
                with listener.accept()[0] as connection:
                    kind(connection)
            asking.join()
            """)
        self.assertEqual([row["Name"] for row in self.requests(report)], ["GET /kept/:id"] * 6)

    def test_failures_and_hang_ups(self):
        _, report = self.record("""
            import http.server, socket, struct
            class Handler(http.server.BaseHTTPRequestHandler):
                def log_message(self, *args): pass
                def do_GET(self):
                    if self.path == "/bad":
                        raise ValueError("of the program")
                    self.send_response(200)
                    self.end_headers()
                    while True:
                        self.wfile.write(bytes(100000))
            class Server(http.server.ThreadingHTTPServer):
                daemon_threads = False
                def handle_error(self, request, address):
                    print(sys.exc_info()[0].__mro__[1].__name__ if self.n else sys.exc_info()[0].__name__)
                    self.n += 1
            Server.n = 0
            server = Server(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                ask(server.server_port, "/bad")
            except http.client.RemoteDisconnected:
                print("closed")
            with socket.create_connection(("127.0.0.1", server.server_port)) as s:
                s.sendall(b"GET /long HTTP/1.0\\r\\n\\r\\n")
                s.recv(10)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.shutdown()
            server.server_close()
            """)
        self.assertEqual(self.endings(report), ["failed", "hung up"])

    LEAVES = """
        def client(port):
            import socket
            when_up(port)
            with socket.create_connection(("127.0.0.1", port), timeout=60) as c:
                c.sendall(b"GET /stream HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
                got = b""
                while b"item" not in got:
                    got += c.recv(65536)
            gone.wait(60)
        gone = threading.Event()
        """

    def check_leaving(self, module, server, how):
        """A client that reads a part of an answer and leaves; the server says when it knows (gone)."""
        if runner.run([PYTHON, "-c", "import " + module]).returncode:
            runner.skip("Python has no " + module)
        _, report = self.record(textwrap.dedent(self.LEAVES) + textwrap.dedent(server))
        ends = [(row["Name"], row["End"]) for row in self.rows(report, "SELECT name AS Name, status AS End FROM request")]
        self.assertEqual(ends, [("GET /stream", how)])

    def test_leaving_a_stream_of_flask(self):
        self.check_leaving("flask", """
            import flask, logging
            from werkzeug.serving import make_server
            logging.getLogger("werkzeug").disabled = True
            app = flask.Flask("app")
            def parts():
                try:
                    while True:
                        yield "item" * 1000
                finally:
                    gone.set()
            @app.route("/stream")
            def stream(): return flask.Response(parts())
            server = make_server("127.0.0.1", 0, app, threaded=True)
            server.daemon_threads = False
            threading.Thread(target=server.serve_forever, daemon=True).start()
            client(server.server_port)
            server.shutdown()
            server.server_close()
            """, "hung up")

    ASGI = """
        import asyncio, uvicorn
        async def app(scope, receive, send):
            if scope["type"] != "http":
                return
            await send({"type": "http.response.start", "status": 200, "headers": [%s]})
            await send({"type": "http.response.body", "body": b"item", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            await send({"type": "http.response.body"})
            gone.set()
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))
        def work():
            client(port)
            server.should_exit = True
        threading.Thread(target=work).start()
        server.run()
        """

    def test_leaving_a_stream_of_uvicorn(self):
        self.check_leaving("uvicorn", self.ASGI % "", "hung up")

    def test_leaving_with_the_whole_answer(self):
        """The application has not ended it, but it is as long as its head says."""
        self.check_leaving("uvicorn", self.ASGI % '(b"content-length", b"4")', "200")

    def test_exceptions_of_coroutines_pass_through(self):
        out, report = self.record("""
            import asyncio, lull
            @lull.request("bad")
            async def bad():
                try:
                    await asyncio.sleep(0)
                    raise KeyError("mine")
                finally:
                    await asyncio.sleep(0)
            @lull.request("long")
            async def long():
                await asyncio.sleep(1000)
            @lull.request("plain")
            def plain(x, y=2): return x + y
            async def main():
                try:
                    await bad()
                except KeyError as error:
                    print(error)
                task = asyncio.create_task(long())
                await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    print("cancelled")
            asyncio.run(main())
            print(plain(1, y=4), plain.__name__)
            """)
        self.assertEqual(out, "'mine'\ncancelled\n5 plain\n")
        self.assertEqual(self.endings(report), ["failed", "hung up", "done"])

    def test_an_agent_that_fails_changes_nothing(self):
        """As if every call into the agent raised."""
        self.record(SERVERS["http.server"].replace("server =", """
        class Broken:
            def __getattr__(self, name):
                raise RuntimeError("of the agent")
        hooks = sys.modules.get("_lull_requests")
        if hooks is not None:
            hooks._agent = Broken()
        server =""", 1))

    def test_a_server_that_is_killed(self):
        self.check_dying("os.kill(os.getpid(), signal.SIGKILL)", 128 + 9)

    def test_a_server_that_crashes(self):
        self.check_dying("import ctypes; ctypes.string_at(0)", 128 + 11)

    def test_a_server_that_leaves_without_a_word(self):
        self.check_dying("os._exit(3)", 3)

    def check_dying(self, how, status):
        """What it had answered is there, what was open is counted."""
        _, report = self.record(f"""
            import lull, os, signal
            for i in range(3):
                with lull.request("answered"):
                    lull.token()
            with lull.request("open"):
                {how}
            """, status=status)
        self.assertEqual([row["Name"] for row in self.requests(report)], ["answered"] * 3)
        self.assertEqual(json.loads(self.answer(report, "-f", "json"))["left_out"]["did_not_end"], 1)

    def test_not_asked_for(self):
        _, report = self.record(SERVERS["wsgiref"], "-t", "osrt")
        self.assertEqual(self.marks(report), [])


class Planted(Case):
    """examples/serve.py on the simulated device: the reason that makes every eighth request slow is among those named."""

    def check(self, style, cause, part, n_slow):
        words = ["--style", style, "--cause", cause, "--requests", "64"]
        env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
        run = runner.run([LULL, "profile", "-q", "-f", "true", "-s", "none", "--python-sampling=false", "-o", self.path("report"),
                          PYTHON, os.path.join(EXAMPLES, "serve.py"), *words], env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        report = self.path("report.lull")
        rows = self.requests(report)
        said = json.loads(self.answer(report, "-f", "json"))
        n, p99_ms = re.match(r"client: (\d+) requests, .*p99 ([\d.]+) ms", run.stdout).groups()
        self.assertEqual(len(rows), int(n))
        # The client has its answer before the call that sends it returns: by how much is up to the machine.
        self.assertLess(said["latency"]["p50_ns"], float(p99_ms) * 1e6)
        self.assertEqual(said["first_token"]["n"], len(rows))
        self.assertEqual({row["Tokens"] for row in rows}, {"4"})
        self.assertGreater(min(int(row["Launches"]) for row in rows), 4)
        named = {c["part"]: c["n_slow"] for c in said["tail"]["causes"]}
        self.assertGreaterEqual(named.get(part, 0), n_slow, (named, said["tail"], said["parts"]))

    def test_garbage_collection(self):
        self.check("threads", "gc", "gc", 4)

    def test_long_prompts_in_batches(self):
        self.check("asyncio", "prompt", "gpu", 4)

    def test_another_service_in_asyncio(self):
        self.check("asyncio", "read", "wait", 4)

    def test_the_interpreter_lock(self):
        self.check("threads", "lock", "lock", 4)

    def test_bursts(self):
        self.check("threads", "burst", "queue", 10)

    def test_copies(self):
        self.check("threads", "copy", "copy", 4)

    def test_a_job_on_the_device(self):
        self.check("asyncio", "job", "others", 4)


class Live(Case):
    """What a server that is recorded tells Prometheus, against what it did."""

    def test_histograms(self):
        port = runner.free_port()
        out, _ = self.record("""
            import lull, urllib.request
            for i in range(5):
                with lull.request("GET /generate"):
                    lull.token()
                    lull.token()
            try:
                with lull.request("GET /generate"):
                    raise ValueError
            except ValueError:
                pass
            wanted = ("lull_request_seconds_count 5", "lull_request_first_token_seconds_count 5", "lull_request_token_gap_seconds_count 5",
                      'lull_requests_total{end="answered"} 5', 'lull_requests_total{end="failed"} 1', "lull_requests_open 1",
                      "lull_request_tokens_total 10")
            with lull.request("open"):
                while "LULL_SESSION" in os.environ:
                    with urllib.request.urlopen("http://127.0.0.1:PORT/metrics") as f:
                        lines = f.read().decode().split("\\n")
                    if all(w in lines for w in wanted):
                        break
                    time.sleep(0.02)
            """.replace("PORT", str(port)), f"--metrics-port={port}")


class Gate(Case):
    """`lull gate` and `lull diff` on made-up requests, whose latencies are known. There are no steps."""

    def make(self, name, latency_us, n=700):
        lines = ["process pid=10 name=server", "lane kind=1 process=1 tid=10 name=main",
                 'label name="GET /" domain=request category=1 api=7', 'label name="200" domain=request category=2 api=7',
                 'label name="token" domain=request category=3 api=7']
        rng = random.Random(name)
        at = 1000
        for i in range(1, n + 1):
            took = int(latency_us(i) * (1 + 0.02 * rng.gauss(0, 1)))
            for label, when in ((1, at), (3, at + took // 4), (2, at + took)):
                lines.append(f"mark start={when}us lane=1 label={label} payload_type=11 payload={i}")
            at += took + 100
        with open(self.path(name + ".txt"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        runner.run([LULL, "text", self.path(name + ".txt"), self.path(name + ".lull")], check=True)
        return self.path(name + ".lull")

    def gate(self, *words):
        run = runner.run([LULL, "gate", "--format", "json", *words])
        said = json.loads(run.stdout)
        return run.returncode, {m["metric"]: m["verdict"] for m in said["checks"]}

    def test_medians_and_tails(self):
        before = self.make("before", lambda i: 1000)
        again = self.make("again", lambda i: 1000)
        slower = self.make("slower", lambda i: 1200)
        tail = self.make("tail", lambda i: 5000 if i % 40 == 0 else 1000)
        metrics = ["-m", "latency,latency_p99,first_token", "--baseline", before]
        same = {"latency": "pass", "latency_p99": "pass", "first_token": "pass"}
        self.assertEqual(self.gate(*metrics, again), (0, same))
        self.assertEqual(self.gate(*metrics, slower), (1, {k: "regressed" for k in same}))
        self.assertEqual(self.gate(*metrics, tail), (1, {**same, "latency_p99": "regressed"}))

    def test_side_by_side(self):
        before, after = self.make("before", lambda i: 1000), self.make("after", lambda i: 1500)
        run = runner.run([LULL, "diff", before, after])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Requests: 700 before, 700 after", run.stdout)
        said = json.loads(runner.run([LULL, "diff", "--format", "json", before, after]).stdout)["requests"]
        ours = [json.loads(self.answer(report, "-f", "json")) for report in (before, after)]
        self.assertEqual(said["latency_p99_ns"], [one["latency"]["p99_ns"] for one in ours])
        self.assertEqual(said["n"], [700, 700])
        for i in (0, 1):
            self.assertAlmostEqual(sum(part[i] for part in said["parts"].values()), said["latency_mean_ns"][i], delta=2)
        other = os.path.join(EXAMPLES, "reports", "dataloader_cpu.lull")
        self.assertNotIn("requests", json.loads(runner.run([LULL, "diff", "--format", "json", before, other]).stdout))

    def test_bounds(self):
        report = self.make("few", lambda i: 1000, 50)
        run = runner.run([LULL, "gate", "--max", "latency < 2 ms", report])
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = runner.run([LULL, "gate", "--max", "latency < 500 us", report])
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        run = runner.run([LULL, "gate", "--max", "latency_p99 < 2 ms", report])
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertIn("needs 100 requests, there are 50", run.stdout + run.stderr)


class Native(Case):
    def check_sockets(self, threshold):
        """By what it reads and sends: as many requests as it had, none shorter than it measured itself."""
        run = runner.run([LULL, "profile", "-q", "-f", "true", "--osrt-threshold=%d" % threshold, "-o", self.path("report"),
                          os.path.join(BUILD, "e2e", "socket_guest")])
        self.assertEqual(run.returncode, 0, run.stderr)
        measured = [int(line) for line in run.stdout.split()]
        self.assertEqual(len(measured), 3)
        report = self.path("report.lull")
        self.assertEqual(json.loads(self.answer(report, "-f", "json"))["found_by"], "sockets")
        rows = list(csv.DictReader(io.StringIO(self.answer(report, "-f", "csv"))))
        self.assertEqual(len(rows), 3, rows)
        for row, least in zip(rows, measured):
            self.assertEqual(sum(int(row[f"{part} (ns)"]) for part in PARTS), int(row["Latency (ns)"]), row)
            self.assertLessEqual(least, int(row["Latency (ns)"]), (row, measured))
        return rows

    def test_a_server_that_nobody_knows(self):
        for row in self.check_sockets(0):
            # It sleeps for 3 ms, if it gets a CPU to fall asleep.
            self.assertGreater(int(row["wait (ns)"]) + int(row["cpu (ns)"]), 0.0025e9, row)

    def test_calls_on_connections_however_short(self):
        """Where all are too short to be recorded for themselves."""
        self.check_sockets(1_000_000_000)

    def check_loop(self, serve, *options):
        """A server of Python that nobody knows, on connections of its own: what it computes for a request is found."""
        out, report = self.record("""
            import gc, socket, time
            gc.disable()
            held = [[i] for i in range(300_000)]
            def collect():
                start = time.perf_counter_ns()
                gc.collect()
                spent.append(time.perf_counter_ns() - start)
            def ask(address):
                with socket.create_connection(address) as c:
                    for _ in range(3):
                        c.sendall(b"ask")
                        assert c.recv(9) == b"answer"
            spent = []
            """ + textwrap.dedent(serve).replace("\n", "\n" + " " * 12) + """
            with open(sys.argv[0] + ".ns", "w") as f:
                print(*spent, file=f)
            """, *options)
        self.assertEqual(out, "")
        with open(self.path("program.py.ns"), encoding="utf-8") as f:
            spent = [int(word) for word in f.read().split()]
        self.assertEqual(json.loads(self.answer(report, "-f", "json"))["found_by"], "sockets")
        rows = self.requests(report)
        self.assertEqual((len(spent), len(rows)), (3, 3))
        for row, least in zip(rows, spent):
            self.assertGreater(int(row["gc (ns)"]), least / 2, (row, spent))
        return report

    LOOP = """
        import asyncio
        async def serve(reader, writer):
            while await reader.read(9):
                collect()
                writer.write(b"answer")
            writer.close()
        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            await asyncio.get_running_loop().run_in_executor(None, ask, server.sockets[0].getsockname())
        asyncio.run(main())
        """

    def test_a_loop_that_asks_what_else_is_ready(self):
        self.check_loop(self.LOOP)

    def test_waits_that_found_something_however_short(self):
        report = self.check_loop(self.LOOP, "--osrt-threshold=1000000000")
        n = self.rows(report, "SELECT count(*) AS n FROM oscall o WHERE o.name LIKE 'epoll%' AND o.ret > 0")[0]["n"]
        self.assertGreaterEqual(n, 3)

    def test_clients_that_leave(self):
        """One has its answer, one leaves without it, one resets the connection, one waits for it to the end; however short calls are."""
        _, report = self.record("""
            import socket
            listener = socket.create_server(("127.0.0.1", 0))
            def ask():
                client = socket.create_connection(listener.getsockname())
                client.sendall(b"ask")
                connection, _ = listener.accept()
                assert connection.recv(9) == b"ask"
                return client, connection
            client, connection = ask()
            connection.sendall(b"answer")
            assert client.recv(9) == b"answer"
            client.close()
            assert connection.recv(9) == b""
            connection.close()
            client, connection = ask()
            client.close()
            assert connection.recv(9) == b""
            connection.close()
            client, connection = ask()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
            client.close()
            try:
                connection.sendall(b"answer")
            except OSError:
                pass
            connection.close()
            for waits in ask():
                waits.detach()
            """, "--osrt-threshold=1000000000")
        self.assertEqual([row["End"] for row in self.requests(report)], ["", "hung up", "hung up"])
        left = json.loads(self.answer(report, "-f", "json"))["left_out"]
        self.assertEqual((left["did_not_end"], left["hung_up"]), (1, 2))

    def test_a_thread_that_takes_a_request_from_another(self):
        """One reads, another computes and answers."""
        self.check_loop("""
            todo = []
            is_there = threading.Semaphore(0)
            def worker():
                while is_there.acquire() and (connection := todo.pop()):
                    collect()
                    connection.sendall(b"answer")
            listener = socket.create_server(("127.0.0.1", 0))
            for target, *args in ((worker,), (ask, listener.getsockname())):
                threading.Thread(target=target, args=args).start()
            connection, _ = listener.accept()
            while connection.recv(9):
                todo.append(connection)
                is_there.release()
            todo.append(None)
            is_there.release()
            """)

    def test_lull_h(self):
        run = runner.run([LULL, "profile", "-q", "-f", "true", "-o", self.path("report"), os.path.join(BUILD, "e2e", "request_guest")])
        self.assertEqual(run.returncode, 0, run.stderr)
        report = self.path("report.lull")
        self.assertEqual([(kind, i) for kind, i, _, _ in self.marks(report)],
                         [(1, 1), (3, 1), (3, 1), (2, 1), (1, 2), (3, 2), (2, 2), (1, 3), (1, 4), (1, 4), (2, 4)])
        lanes = self.rows(report, "SELECT payload AS id, count(DISTINCT lane) AS n FROM range r JOIN label l ON l.id = r.label "
                          "WHERE l.api = 7 GROUP BY 1 ORDER BY 1")
        self.assertEqual([(row["id"], row["n"]) for row in lanes], [(1, 1), (2, 2), (3, 1), (4, 1)])
        self.assertEqual([(row["ID"], row["Tokens"], row["End"]) for row in self.requests(report)],
                         [("1", "2", "done"), ("2", "1", "done"), ("4", "0", "done")])
        left = json.loads(self.answer(report, "-f", "json"))["left_out"]
        self.assertEqual((left["began_before"], left["did_not_end"], left["id_used_again"]), (0, 1, 1))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
