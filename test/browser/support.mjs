// What the tests of the page share: a running `lull view`, a Chromium, and checks that say what they expected.

import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const build = process.env.BUILD ?? "build";
export const lull = `${build}/lull`;
export const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export const scratch = mkdtempSync(join(tmpdir(), "lull-browser-"));
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
});

let nChecks = 0;
let nFailed = 0;

/** Note a failure and go on, so that one run shows them all. */
export function check(is, what, got) {
  nChecks++;
  if (is) return;
  nFailed++;
  console.log(`FAILED: ${what}${got === undefined ? "" : `; got ${JSON.stringify(got)}`}`);
}

export function finish(name) {
  console.log(`${name}: ${nFailed ? `${nFailed} of ${nChecks} checks FAILED` : `${nChecks} checks PASSED`}`);
  process.exit(nFailed ? 1 : 0);
}

/** A report from a readable trace. */
export function report(name, text) {
  const from = join(scratch, `${name}.txt`);
  const to = join(scratch, `${name}.lull`);
  writeFileSync(from, text);
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
  const ended = new Promise((resolve) => child.on("exit", (code) => { children.delete(child); resolve(code); }));
  for (let i = 0; i < 600 && !/http:\S+/.test(out) && child.exitCode === null; i++) await new Promise((r) => setTimeout(r, 50));
  const url = /http:\S+/.exec(out)?.[0];
  if (!url) throw new Error(`lull view did not start: ${err}`);
  return { url, pid: child.pid, stderr: () => err, stdout: () => out, end: async (signal = "SIGINT") => { child.kill(signal); return ended; } };
}

/** The browser, or null where there is none: then the caller says that it skips. */
export async function browser(extra = []) {
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...extra] });
}

/** A page whose complaints are collected. */
export async function open(b, url, options = {}) {
  const context = await b.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => page.complaints.push(`${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => page.complaints.push(`error: ${e.message}`));
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin) && !/^(data|blob|file):/.test(r.url())) page.complaints.push(`request: ${r.url()}`); });
  await page.goto(url);
  await settle(page);
  return page;
}

/** Wait until the page has drawn all it asked for. The page forbids eval, so no waitForFunction. */
export async function settle(page) {
  for (let i = 0; i < 400; i++) {
    await page.waitForTimeout(25);
    const is = await page.evaluate(() => Boolean(window.lull && window.lull.state().isFull && window.lull.state().isIdle));
    if (is) return;
  }
  throw new Error("the page does not settle");
}

export const state = (page) => page.evaluate(() => {
  const s = window.lull.state();
  return { ...s, selection: s.selection && { ...s.selection, links: s.selection.links?.length, fields: undefined } };
});
