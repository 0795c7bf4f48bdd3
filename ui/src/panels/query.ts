// Query: SQL over the report, read-only.

import { h } from "../dom";
import { goToEvent } from "../go";
import { type TableOptions, emptyState, tableView } from "../table";
import type { Cell, Column, Table } from "../types";
import { type Context, type Panel, failure } from "./panel";

/** One for each kind of question; a test runs them all. The first stands in the box. */
const EXAMPLES: [string, string][] = [
  ["Kernels", "SELECT name, count(*) AS n, sum(dur) AS total_ns FROM kernels GROUP BY name ORDER BY total_ns DESC LIMIT 20"],
  ["Calls", "SELECT name, count(*) AS n, sum(dur) AS total_ns, max(dur) AS longest_ns FROM calls GROUP BY name ORDER BY total_ns DESC LIMIT 20"],
  ["Idle times", "SELECT start, dur, device, before, after FROM idle ORDER BY dur DESC LIMIT 20"],
  // Those with readable names first.
  ["Tables", "SELECT name FROM sqlite_master ORDER BY name GLOB '[A-Z]*', name"],
];

let last = EXAMPLES[0][1];

function toTable(rows: Record<string, Cell>[]): Table {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const columns = names.map((name): Column => ({
    name, decimals: 3, kind: rows.some((r) => typeof r[name] === "string") ? "text" : rows.every((r) => r[name] === null || Number.isInteger(r[name])) ? "int" : "f64",
  }));
  return { name: "query", title: "", summary: "", columns, rows: rows.map((r) => names.map((n) => r[n])), n: rows.length };
}

const column = (names: string[], wanted: RegExp): number => names.findIndex((n) => wanted.test(n));

/** Rows that say when something was are shown on the timeline by a click: with a name the event itself, else the time. */
function jumps(ctx: Context, rows: Record<string, Cell>[]): TableOptions {
  const { app, timeline } = ctx;
  const names = Object.keys(rows[0]);
  const [start, end, dur, name] = [/^start(_?ns)?$/i, /^end(_?ns)?$/i, /^dur(ation)?(_?ns)?$/i, /^(name|demangledName|shortName)$/i].map((w) => column(names, w));
  if (start < 0 || !rows.some((r) => typeof r[names[start]] === "number")) return {};
  const go = async (row: Cell[]): Promise<void> => {
    if (typeof row[start] !== "number") return;
    const from = (row[start] as number) - (app.meta.origin ?? 0);
    const to = end >= 0 ? Number(row[end]) - (app.meta.origin ?? 0) : from + (dur >= 0 ? Number(row[dur]) : 0);
    const hit = name >= 0 && typeof row[name] === "string" ? await app.findAt(String(row[name]), from) : null;
    if (hit) await goToEvent(app, timeline, { lane: hit[0], start: hit[1], end: hit[2] }, true);
    else {
      app.reveal({ from, to });
      app.setRange({ from, to: Math.max(to, from + 1) });
    }
  };
  return { onRow: (row) => void go(row) };
}

export const query: Panel = {
  id: "query",
  place: 150,
  title: "Query",
  render: (ctx) => {
    const { app } = ctx;
    if (app.source.isOffline) {
      return emptyState("An exported file cannot run SQL", "lull view and lull query run SQL over the report itself.");
    }
    const text = h("textarea", { spellcheck: "false", rows: 3, "aria-label": "SQL" }, last);
    const result = h("div", { class: "panel-body" }, h("div", { class: "small query-hint" }, `Rows appear here. The buttons run an example each, and “Tables” lists all tables. Times are in ns${app.inFile(app.meta.from) ? `; the page counts from the first event, ${app.inFile(app.meta.from)} in the file` : ""}; nothing can be changed, and a query ends after 5 s.`));
    const run = async (): Promise<void> => {
      last = text.value;
      result.replaceChildren(h("div", { class: "loading" }, "…"));
      try {
        const answer = await app.source.post<{ rows: Record<string, Cell>[]; notice: string | null }>("query", { f: app.report || undefined }, text.value);
        result.replaceChildren(answer.notice ? h("div", { class: "notice-line" }, answer.notice) : "",
          answer.rows.length ? tableView(toTable(answer.rows), jumps(ctx, answer.rows)) : emptyState("No rows"));
      } catch (e) {
        result.replaceChildren(failure(e));
      }
    };
    text.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void run();
      e.stopPropagation();
    });
    return h("div", { class: "panel query" },
      h("div", { class: "query-box" }, text, h("div", null, h("button", { class: "primary", onclick: () => void run() }, "Run ", h("kbd", null, "Ctrl ⏎")))),
      h("div", { class: "query-examples" }, h("span", { class: "small" }, "Examples"),
        EXAMPLES.map(([name, sql]) => h("button", { class: "example", title: sql, onclick: () => { text.value = sql; void run(); } }, name))), result);
  },
};
