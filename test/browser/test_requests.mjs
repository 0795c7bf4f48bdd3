// The panel Requests: how long requests take, and a slow one beside a typical one; from the server and in one file.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { browser, check, lull, main, open, report, root, scratch, settle, until, view } from "./support.mjs";

const trace = (name) => report(name, readFileSync(join(root, `test/golden/requests/${name}/trace.txt`), "utf8"));

/** The panel against what the command says of the same report. */
async function panel(page, path, name) {
  const said = JSON.parse(execFileSync(lull, ["requests", "-f", "json", path], { encoding: "utf8" }));
  await page.click('[data-tab="requests"]');
  await until(async () => (await page.locator(".requests").count()) === 1, "the panel is shown");
  await settle(page);
  const text = await page.innerText(".requests");
  check(text.includes(`${said.n} requests · p50`), `${name}: how many there are`, text);
  for (const cause of said.tail.causes) {
    check(text.includes(`${cause.part}: ${cause.n_slow} slow ${cause.because}. Fix: ${cause.fix}.`), `${name}: the cause ${cause.part}`, text);
  }
  check((await page.locator(".scatter circle").count()) === said.n, `${name}: a dot for each`);
  check((await page.locator(".scatter circle.slow").count()) === said.tail.n_slow, `${name}: slow ones are marked`);
  const drawn = await page.$$eval(".histogram rect title", (titles) => titles.reduce((n, t) => n + Number(t.textContent.split(": ")[1]), 0));
  check(drawn === said.n, `${name}: the bars hold all of them`, drawn);
  const { example } = said.tail.causes[0];
  await page.click(".request-causes button >> nth=0");
  await settle(page);
  const rows = await page.$$eval(".request-row button", (all) => all.map((b) => b.innerText));
  check(new RegExp(`^(slowest: )?request ${example}$`).test(rows[0]) && rows[1] === `typical: request ${said.tail.usual}`, `${name}: the slow one is beside a typical one`, rows);
  const shown = await page.evaluate(() => ({ step: window.lull.app.step, view: window.lull.app.view }));
  check(shown.step && shown.view.from < shown.step.from && shown.view.to > shown.step.to, `${name}: the timeline shows it`, shown);
  await page.click(".request-row button >> nth=1");
  await settle(page);
  const usual = await page.evaluate(() => window.lull.app.step);
  check(usual.to - usual.from < shown.step.to - shown.step.from, `${name}: and the typical one, on a click`, [usual, shown.step]);
  check(page.complaints.length === 0, `${name}: nothing in the console`, page.complaints);
}

async function served() {
  const path = trace("tail");
  const server = await view(path);
  await panel(await open(await browser(), server.url), path, "server");
}

/** Thousands: not each has a dot, but the bars count them all. */
async function of_many() {
  const n = 5000;
  const lines = ["process pid=10 name=server has_agent=1", "lane kind=1 process=1 tid=10 name=first",
    'label name="GET /a" domain=request category=1 api=7', 'label name="200" domain=request category=2 api=7'];
  for (let i = 1; i <= n; i++) {
    lines.push(`mark start=${i * 2000}us lane=1 label=1 payload_type=11 payload=${i}`);
    lines.push(`mark start=${i * 2000 + (i % 10 ? 500 : 1500)}us lane=1 label=2 payload_type=11 payload=${i}`);
  }
  const page = await open(await browser(), (await view(report("many", `${lines.join("\n")}\n`))).url);
  await page.click('[data-tab="requests"]');
  await until(async () => (await page.locator(".requests").count()) === 1, "the panel is shown");
  check((await page.locator(".scatter circle").count()) < n / 2, "some are drawn");
  const bars = await page.$$eval(".histogram rect", (all) => all.map((r) => [r.getAttribute("class"), Number(r.getAttribute("height"))]));
  check(bars.length === 2 && bars[0][0] === "" && bars[1][0] === "slow" && Math.abs(bars[0][1] / bars[1][1] - 9) < 0.01, "a tenth is slow", bars);
  const titles = await page.$$eval(".histogram rect title", (all) => all.map((t) => t.textContent.split(": ")[1]).join());
  check(titles.replace(/\s/g, "") === "4500,500", "how many there are in each bar", titles);
}

async function in_one_file() {
  const path = trace("tail");
  const file = join(scratch, "requests.html");
  execFileSync(lull, ["export", "-t", "html", "-f", "true", "-o", file, path], { stdio: "ignore" });
  await panel(await open(await browser(), pathToFileURL(file).href), path, "file");
}

async function without_requests() {
  const server = await view(report("allocs", readFileSync(join(root, "test/golden/report/alloc_peak/trace.txt"), "utf8")));
  const page = await open(await browser(), server.url);
  await page.click('[data-tab="requests"]');
  await until(async () => /No requests were recorded/.test(await page.innerText(".drawer-body")), "it says that there are none");
  check(await page.$eval('[data-tab="requests"]', (t) => t.classList.contains("absent")), "the tab says so, too");
}

await main({ requests_from_the_server: served, many_requests: of_many, requests_in_one_file: in_one_file, without_requests });
