// The server as somebody who means harm sees it: wrong token, foreign names, paths, sizes, slow and broken
// requests. Raw sockets, because browsers would not send most of it.

import { connect } from "node:net";
import { spawnSync } from "node:child_process";
import { request } from "node:http";
import { statSync } from "node:fs";
import { join } from "node:path";
import { check, limit, lull, main, pause, report, scratch, sharedView, view } from "./support.mjs";

const path = () => report("http", `process pid=10 name=a
device process=1 device_id=0 name="Test GPU" uuid=aa n_sms=10
lane kind=1 process=1 tid=10 name=main
lane kind=2 process=1 device=1 context_id=1 stream_id=7
launch name=gemm grid_x=1
cuda_call start=1us dur=4us lane=1 name=cudaLaunchKernel correlation=2 api=2
kernel start=10us dur=20us lane=2 launch=1 correlation=2 process=1
kernel start=60us dur=20us lane=2 launch=1 correlation=3 process=1
`);
let hostname, port, base, host;

/** The server that most cases ask. */
async function serve() {
  ({ hostname, port, pathname: base, host } = new URL((await sharedView(path())).url));
}

/** Send bytes; gives the status, the head and the body, or status 0 if the connection was closed. */
function send(text, timeout = limit()) {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const chunks = [];
    const done = () => {
      socket.destroy();
      const all = Buffer.concat(chunks).toString("latin1");
      const [head, ...body] = all.split("\r\n\r\n");
      resolve({ status: Number(/^HTTP\/1\.\d (\d+)/.exec(all)?.[1] ?? 0), head, body: body.join("\r\n\r\n") });
    };
    socket.on("connect", () => socket.write(text));
    socket.on("data", (d) => chunks.push(d));
    socket.on("end", done);
    socket.on("error", done);
    setTimeout(done, timeout).unref();
  });
}

const get = (target, headers = {}, method = "GET", body = "") => {
  const all = { Host: host, Connection: "close", ...(body ? { "Content-Length": body.length } : {}), ...headers };
  const lines = Object.entries(all).filter(([, v]) => v !== null).map(([k, v]) => `${k}: ${v}`);
  return send(`${method} ${target} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
};
const expect = async (status, what, ...args) => {
  const got = await get(...args);
  check(got.status === status, what, got.status);
  return got;
};

async function whoAsks() {
  await serve();
  const good = await expect(200, "the page is served", base);
  for (const [name, value] of [["Content-Security-Policy", "default-src 'none'"], ["X-Content-Type-Options", "nosniff"], ["Referrer-Policy", "no-referrer"],
    ["Cross-Origin-Resource-Policy", "same-origin"], ["Cache-Control", "no-store"]]) {
    check(good.head.toLowerCase().includes(`${name}: ${value}`.toLowerCase()), `${name} is sent`);
  }
  check(!/access-control/i.test(good.head), "no other page may read it");
  await expect(200, "an answer is served", `${base}meta`, { "Sec-Fetch-Site": "same-origin" });
  await expect(404, "without a token there is nothing", "/");
  await expect(404, "a wrong token is refused", `/${"a".repeat(26)}/meta`);
  await expect(404, "half a token is refused", `${base.slice(0, 14)}/meta`);
  await expect(404, "a token with something after it is refused", `${base.slice(0, -1)}x/meta`);
  await expect(403, "another name that points here is refused", `${base}meta`, { Host: "evil.example" });
  await expect(403, "also with our name inside", `${base}meta`, { Host: `127.0.0.1.evil.example:${port}` });
  await expect(403, "an empty Host is refused", `${base}meta`, { Host: "" });
  await expect(200, "a forwarded port is served", `${base}meta`, { Host: "localhost:9000" });
  await expect(403, "another origin is refused", `${base}meta`, { Origin: "http://evil.example" });
  await expect(403, "a page of a file is refused", `${base}meta`, { Origin: "null" });
  await expect(200, "our own origin is served", `${base}meta`, { Origin: `http://${host}` });
  for (const site of ["cross-site", "same-site"]) await expect(403, `${site} is refused`, `${base}meta`, { "Sec-Fetch-Site": site });
  await expect(403, "an address that was typed gives no data", `${base}meta`, { "Sec-Fetch-Site": "none" });
  await expect(200, "but the page", base, { "Sec-Fetch-Site": "none" });
}

async function whatIsAskedFor() {
  await serve();
  for (const target of ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/etc/passwd", "page.js/../meta", "/etc/passwd", "meta/", "meta%00", "index.html", "nothing"]) {
    const got = await get(`${base}${target}`);
    check(got.status === 404 && !/root:/.test(got.body), `${target} is not served`, got.status);
  }
  for (const method of ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"]) {
    const got = await get(`${base}meta`, {}, method);
    check(got.status >= 400, `${method} is refused`, got.status);
  }
}

async function sql() {
  await serve();
  await expect(405, "an answer takes no POST", `${base}meta`, { "Content-Type": "application/sql" }, "POST", "x");
  await expect(403, "SQL as a form would send it is refused", `${base}query`, { "Content-Type": "text/plain" }, "POST", "select 1");
  const answer = await get(`${base}query`, { "Content-Type": "application/sql" }, "POST", "select count(*) as n from kernels");
  check(answer.status === 200 && /"n": 2/.test(answer.body), "SQL is answered", answer.body.slice(0, 100));
  for (const statement of ["attach '/tmp/x.db' as x", "pragma writable_schema=1", "create table t(x)", "select load_extension('x')", "drop table kernels", ""]) {
    const got = await get(`${base}query`, { "Content-Type": "application/sql" }, "POST", statement || " ");
    check(got.status !== 500 && !(got.status === 200 && /"x"/.test(got.body)), `refused: ${statement}`, got.status);
  }
}

async function endlessQuery() {
  await serve();
  const got = await get(`${base}query`, { "Content-Type": "application/sql" }, "POST", "with recursive t(x) as (select 1 union all select x+1 from t) select sum(x) from t");
  check(/took too long and was stopped/.test(got.body), "an endless query ends, and that is said", [got.status, got.body]);
}

/** Every question with every kind of nonsense. */
async function nonsense() {
  await serve();
  await expect(413, "a large body is refused", `${base}query`, { "Content-Type": "application/sql" }, "POST", "x".repeat(100000));
  check((await get(`${base}meta?${"a".repeat(40000)}`)).status >= 400, "a long address is refused");
  check((await get(`${base}meta`, { X: "a".repeat(40000) })).status >= 400, "long headers are refused");

  // Bad arguments of all answers.
  const values = ["", "-1", "0", "1", "99999999", "18446744073709551615", "99999999999999999999999", "0-4294967295", "3-1", "x", "%00", "%zz", "1,2,,3", "a%27b", "*"];
  let n = 0;
  for (const name of ["tiles", "names", "curve", "event", "next", "gaps", "search", "table", "flame", "source", "events", "sums", "path", "receipt", "diff", "steps", "verdict", "whatif", "ranks", "health"]) {
    for (const key of ["l", "t", "r", "id", "c", "lane", "dir", "n", "name", "q", "from", "to", "f", "args", "regex", "process", "slack"]) {
      for (const value of values.slice(n % 3, n % 3 + 6)) {
        const got = await get(`${base}${name}?${key}=${value}&l=10&t=0-1&r=0&lane=0&q=${value || "x"}&regex=1`);
        check([200, 400, 404, 413].includes(got.status), `${name} with ${key}=${value}`, got.status);
        n++;
      }
    }
  }
  await expect(413, "too many tiles are refused", `${base}tiles?l=4&t=0-100000&r=0-1`);
}

async function brokenAndSlow() {
  await serve();
  for (const text of ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x00\x01\x02\xff\r\n\r\n", `GET ${base}meta HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 99999999999999999999\r\n\r\n`,
    `GET ${base}meta HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n`, "A".repeat(200000)]) {
    await send(text, 300);
  }
  const slow = Array.from({ length: 50 }, () => connect(Number(port), hostname));
  await Promise.all(slow.map((s) => new Promise((done) => {
    s.on("error", done);
    s.on("connect", () => s.write(`GET ${base}meta HTTP/1.1\r\nHost: `, done));
  })));
  await expect(200, "half requests do not keep others out", `${base}meta`);
  slow.forEach((s) => s.destroy());
}

async function ends() {
  const server = await view(path());
  check((await server.end("SIGTERM")) === 0, "SIGTERM ends it well");
  const idle = await view("--idle", "1s", path());
  check((await Promise.race([idle.ended, pause(limit()).then(() => "still there")])) === 0, "it ends when nobody asks");
}

async function options() {
  const run = (...args) => spawnSync(lull, ["view", "--no-browser", ...args], { encoding: "utf8", timeout: limit() });
  const refused = run("--listen", "0.0.0.0", path());
  check(refused.status === 2 && /--i-know/.test(refused.stderr), "--listen alone is refused", refused.stderr);
  check(run().status === 2 && run(join(scratch, "none.lull")).status === 1, "no report, and one that is not there, are told apart");
  const open = await view("--listen", "127.0.0.1", "--i-know", path());
  check(/warning/.test(open.stderr()), "--listen with --i-know warns", open.stderr());
}

async function unixSocket() {
  const socket = join(scratch, "s.sock");
  const local = await view("--socket", socket, path());
  check((statSync(socket).mode & 0o777) === 0o600, "only the owner may use the socket", statSync(socket).mode);
  check(/ssh -L/.test(local.stdout()), "it says how to forward it", local.stdout());
  const status = await new Promise((done) => {
    request({ socketPath: socket, path: `${new URL(local.url).pathname}meta`, headers: { Host: "localhost:8080" } }, (r) => { r.resume(); done(r.statusCode); }).end();
  });
  check(status === 200, "the socket is served", status);
}

await main({
  who_asks: whoAsks,
  what_is_asked_for: whatIsAskedFor,
  sql_reads_only: sql,
  an_endless_query_ends: endlessQuery,
  nonsense_is_refused: nonsense,
  broken_and_slow_requests: brokenAndSlow,
  it_ends: ends,
  options_that_are_refused: options,
  a_unix_socket: unixSocket,
});
