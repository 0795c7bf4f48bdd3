// What the tests of the page share: running cases one by one, a running `lull view`, a Chromium, and checks that say
// what they expected.
//
// A test program prints a line on standard output for each case when it ends, and nothing else there:
//
//	ok NAME
//	FAILED NAME			what was wrong is on standard error, before it
//	skipped NAME: REASON
//
// It goes on after a case that failed, and ends with status 1 then. Arguments choose cases: those whose name contains one
// of them. Limits are there for what hangs; LULL_TEST_PATIENCE=N makes them N times as long.

import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const build = resolve(process.env.BUILD ?? "build");
export const lull = join(build, "lull");
export const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

const PATIENCE = Number(process.env.LULL_TEST_PATIENCE) || 1;

/** Milliseconds after which something hangs. */
export const limit = (seconds = 60) => Math.max(seconds, 60) * 1000 * PATIENCE;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export const scratch = mkdtempSync(join(tmpdir(), "lull-browser-"));
const children = new Set();
const contexts = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
});

// ---- cases ----

class Skipped extends Error {}

/** The case cannot be tried here. */
export function skip(why) {
  throw new Skipped(why);
}

let nFailed = 0; // checks of the present case

/** Note a failure and go on, so that one run shows them all. */
export function check(is, what, got) {
  if (is) return;
  nFailed++;
  console.error(`not so: ${what}${got === undefined ? "" : `; got ${JSON.stringify(got)}`}`);
}

/** What `look` gives, once it is something. */
export async function until(look, what, seconds) {
  const end = Date.now() + limit(seconds);
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: still not so after ${limit(seconds) / 1000} s`);
    await pause(25);
  }
}

/** Check what has to come by itself: `get` gives a value and `is` says whether that is it. */
export async function comes(get, is, what) {
  let got;
  await until(async () => { got = await get(); return is(got); }, what).catch(() => undefined);
  check(is(got), what, got);
  return got;
}

async function closeAll() {
  for (const context of contexts) await context.close().catch(() => undefined);
  contexts.clear();
  for (const child of children) if (!child.isShared) child.kill("SIGKILL");
}

async function run(name, body) {
  nFailed = 0;
  let line = "";
  try {
    await body();
    line = nFailed ? `FAILED ${name}` : `ok ${name}`;
  } catch (e) {
    if (!(e instanceof Skipped)) console.error(e);
    line = e instanceof Skipped ? `skipped ${name}: ${e.message.replace(/\s+/g, " ")}` : `FAILED ${name}`;
  }
  await closeAll();
  writeSync(1, `${line}\n`);
  return line.startsWith("FAILED");
}

/** Run these, by name, or those that the command line chooses, and end. */
export async function main(cases) {
  const words = process.argv.slice(2);
  const chosen = Object.entries(cases).filter(([name]) => !words.length || words.some((w) => name.includes(w)));
  if (!chosen.length) console.error(`no case is named ${words.join(" or ")}`);
  process.chdir(root);
  let nBad = chosen.length ? 0 : 1;
  for (const [name, body] of chosen) nBad += await run(name, body);
  await theBrowser?.close().catch(() => undefined);
  process.exit(nBad ? 1 : 0);
}

// ---- lull ----

/** A report from a readable trace. */
export function report(name, text) {
  const from = join(scratch, `${name}.txt`);
  const to = join(scratch, `${name}.lull`);
  writeFileSync(from, text);
  rmSync(to, { force: true });
  execFileSync(lull, ["text", from, to]);
  return to;
}

/** Start `lull view` on these; gives the address and a way to end it. */
export async function view(...args) {
  const child = spawn(lull, ["view", "--no-browser", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let out = "";
  let err = "";
  child.stdout.on("data", (d) => { out += d; });
  child.stderr.on("data", (d) => { err += d; });
  const ended = new Promise((done) => child.on("exit", (code, signal) => { children.delete(child); done(code ?? signal); }));
  let isClosed = false; // all that it said is here
  child.on("close", () => { isClosed = true; });
  await until(() => /http:\S+/.test(out) || isClosed, "lull view starts");
  const url = /http:\S+/.exec(out)?.[0];
  if (!url) throw new Error(`lull view did not start: ${err}`);
  return { url, pid: child.pid, ended, stderr: () => err, stdout: () => out, end: async (signal = "SIGINT") => { child.kill(signal); return ended; } };
}

const shared = new Map();

/** The same for several cases: it stays until all have ended. */
export async function sharedView(...args) {
  const key = args.join("\n");
  if (!shared.has(key)) {
    const server = await view(...args);
    for (const child of children) child.isShared ||= child.pid === server.pid;
    shared.set(key, server);
  }
  return shared.get(key);
}

// ---- the page ----

let theBrowser;

/** The browser, one for all cases; where there is none they are skipped. */
export async function browser(extra = []) {
  const path = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(path)) skip(`no Chromium at ${path} (CHROMIUM=FILE names another)`);
  const { chromium } = await import("playwright-core").catch(() => skip("playwright-core did not come from npm"));
  theBrowser ??= await chromium.launch({ executablePath: path, args: [...FLAGS, ...extra], timeout: limit() });
  return theBrowser;
}

/** A page whose complaints are collected. */
export async function open(b, url, options = {}) {
  const context = await b.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", ...options });
  contexts.add(context);
  context.on("close", () => contexts.delete(context));
  context.setDefaultTimeout(limit());
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => page.complaints.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => page.complaints.push(`error: ${e.message}`));
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin) && !/^(data|blob|file):/.test(r.url())) page.complaints.push(`request: ${r.url()}`); });
  await page.goto(url);
  await settle(page);
  return page;
}

/** The page of a report as one file; gives its address. */
export function exportHtml(path, ...args) {
  const to = join(scratch, `page-${Math.random().toString(36).slice(2)}.html`);
  execFileSync(lull, ["export", "-t", "html", "-o", to, ...args, path], { stdio: "ignore" });
  return pathToFileURL(to).href;
}

/** An answer of the server, as the page asks for it; throws what it says if it refuses. */
export async function answer(server, name, args = {}) {
  const got = await fetch(`${server.url}${name}?${new URLSearchParams(args)}`);
  if (!got.ok) throw new Error(await got.text());
  return got.json();
}

const pages = new Map();

/** One page for several cases: it stays, and each begins where the page opens. */
export async function sharedPage(...args) {
  const key = args.join("\n");
  if (!pages.has(key)) {
    const page = await open(await browser(), (await sharedView(...args)).url);
    contexts.delete(page.context());
    pages.set(key, page);
  }
  const page = pages.get(key);
  page.complaints.length = 0;
  await page.evaluate(async () => {
    const { app } = window.lull;
    document.activeElement?.blur();
    await app.search("");
    app.select(null);
    app.setRange(null);
    app.show(app.first(), false);
    app.openTab(app.firstTab);
  });
  await settle(page);
  return page;
}

/** Wait until the page has drawn all it asked for. The page forbids eval, so no waitForFunction. */
export async function settle(page) {
  // A new size is noticed while a frame is made.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await until(() => page.evaluate(() => Boolean(window.lull && window.lull.state().isFull && window.lull.state().isIdle)), "the page settles");
}

export const state = (page) => page.evaluate(() => {
  const s = window.lull.state();
  return { ...s, selection: s.selection && { ...s.selection, links: s.selection.links?.length, fields: undefined } };
});
