// The page without a mouse and without sight: axe-core over every panel, and every panel by keys alone.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { browser, check, comes, main, open, root, settle, sharedView, skip, state } from "./support.mjs";

const reports = ["examples/reports/dataloader_cpu.lull", "examples/reports/dataloader_cpu-fixed.lull"];

function axeSource() {
  try {
    return readFileSync(join(root, "test/browser/node_modules/axe-core/axe.min.js"), "utf8");
  } catch {
    return skip("axe-core did not come from npm");
  }
}

/** What axe-core calls serious or critical below `where`. */
async function serious(page, where, rules) {
  return page.evaluate(async ([selector, only]) => {
    const found = await window.axe.run(selector, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) });
    return found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
      .flatMap((v) => v.nodes.slice(0, 3).map((n) => `${v.id}: ${n.html.slice(0, 140)} (${n.failureSummary.slice(0, 200)})`));
  }, [where, rules]);
}

async function show(page, id) {
  await page.evaluate((t) => window.lull.app.openTab(t), id);
  await settle(page);
}

const panels = (page) => page.$$eval("[data-tab]", (tabs) => tabs.map((t) => t.dataset.tab));

async function nothingSerious() {
  const axe = axeSource();
  const page = await open(await browser(), (await sharedView(...reports)).url);
  await page.evaluate(axe);
  const whole = await serious(page, "body");
  check(!whole.length, "the page as it opens", whole);
  // A kernel is selected, so that the selection has something to show.
  await page.evaluate(async () => {
    const { app } = window.lull;
    const row = app.meta.rows.find((r) => r.kind === "kernel");
    const at = await app.source.ask("next", { lane: row.lane, t: Math.round(app.view.from), dir: 1 });
    await app.selectAt(row.lane, (at.start + at.end) / 2);
  });
  for (const id of (await panels(page)).filter((p) => p !== "compare")) {
    await show(page, id);
    const bad = await serious(page, ".drawer-body");
    check(!bad.length, id, bad);
  }
  await page.keyboard.press("?");
  const keys = await serious(page, ".help");
  check(!keys.length, "the list of keys", keys);
  await page.keyboard.press("Escape");
  await page.evaluate(() => [...document.querySelectorAll("header button")].find((b) => b.textContent === "Dark").click());
  await show(page, "selection");
  const dark = await serious(page, "body", ["color-contrast"]);
  check(!dark.length, "when it is dark", dark);
}

/** Press a key until the focus is where `is` says. */
async function tabTo(page, selector, key = "Tab") {
  for (let n = 0; n < 60; n++) {
    if (await page.evaluate((s) => !!document.activeElement?.matches(s), selector)) return true;
    await page.keyboard.press(key);
  }
  return false;
}

async function keysAlone() {
  const page = await open(await browser(), (await sharedView(...reports)).url);
  const all = await panels(page);
  check(await tabTo(page, '[role="treeitem"]'), "Tab comes to the rows");
  check(await tabTo(page, ".titles-scroll [role=treeitem]"), "and to those that are not pinned");
  const focused = () => page.evaluate(() => ({ key: document.activeElement?.dataset.key, open: document.activeElement?.getAttribute("aria-expanded") }));
  const group = await focused();
  await page.keyboard.press("ArrowLeft");
  await comes(focused, (f) => f.key === group.key && f.open === "false", "the left arrow closes a group, and its title keeps the focus");
  await page.keyboard.press("ArrowRight");
  await comes(focused, (f) => f.key === group.key && f.open === "true", "the right arrow opens it again");
  const { from } = (await state(page)).view;
  await page.keyboard.press("ArrowDown");
  await comes(focused, (f) => f.key && f.key !== group.key, "the arrow down goes to the next row");
  check((await state(page)).view.from === from, "and the view stays");
  check(await tabTo(page, "[data-tab]"), "Tab comes to the tabs");
  await page.keyboard.press("Home"); // Tab comes to the one that is open
  const reached = [];
  for (let n = 0; n < all.length; n++) {
    await page.keyboard.press("Enter");
    await settle(page);
    reached.push(await page.getAttribute('[role="tab"][aria-selected="true"]', "data-tab"));
    await page.keyboard.press("ArrowRight");
  }
  check(reached.join() === all.join(), "arrows and Enter open every panel", reached);
  check(await tabTo(page, ".drawer-body"), "the next stop is the panel itself");
  await page.keyboard.press("1");
  await settle(page);
  check((await state(page)).tab === all[0], "a number opens a panel from anywhere");
  check(page.complaints.length === 0, "nothing in the console", page.complaints);
}

await main({ axe_finds_nothing_serious: nothingSerious, every_panel_by_keys: keysAlone });
