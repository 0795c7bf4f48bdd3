// Query: SQL over the report, read-only.

import { h } from "../dom";
import { emptyState, tableView } from "../table";
import type { Cell, Column, Table } from "../types";
import { type Panel, failure } from "./panel";

const EXAMPLES = [
  "SELECT name, count(*) AS n, sum(dur_ns) AS total_ns FROM kernels GROUP BY name ORDER BY total_ns DESC LIMIT 20",
  "SELECT name FROM sqlite_master ORDER BY name",
];

let last = EXAMPLES[0];

function toTable(rows: Record<string, Cell>[]): Table {
  const names = rows.length ? Object.keys(rows[0]) : [];
  const columns = names.map((name): Column => ({
    name, decimals: 3, kind: rows.some((r) => typeof r[name] === "string") ? "text" : rows.every((r) => r[name] === null || Number.isInteger(r[name])) ? "int" : "f64",
  }));
  return { name: "query", title: "", summary: "", columns, rows: rows.map((r) => names.map((n) => r[n])), n: rows.length };
}

export const query: Panel = {
  id: "query",
  title: "Query",
  render: ({ app }) => {
    if (app.source.isOffline) {
      return emptyState("No SQL in a file", "lull view and lull query run SQL over the report itself.");
    }
    const text = h("textarea", { spellcheck: "false", rows: 3, "aria-label": "SQL" }, last);
    const result = h("div", { class: "panel-body" }, h("div", { class: "small query-hint" }, "Rows appear here. “Tables” lists what there is; nothing can be changed, and a query ends after 5 s."));
    const run = async (): Promise<void> => {
      last = text.value;
      result.replaceChildren(h("div", { class: "loading" }, "…"));
      try {
        const answer = await app.source.post<{ rows: Record<string, Cell>[]; notice: string | null }>("query", { f: app.report || undefined }, text.value);
        result.replaceChildren(answer.notice ? h("div", { class: "notice-line" }, answer.notice) : "",
          answer.rows.length ? tableView(toTable(answer.rows)) : emptyState("No rows"));
      } catch (e) {
        result.replaceChildren(failure(e));
      }
    };
    text.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void run();
      e.stopPropagation();
    });
    return h("div", { class: "panel query" },
      h("div", { class: "query-box" }, text, h("div", { class: "query-buttons" },
        h("button", { class: "primary", onclick: () => void run() }, "Run ", h("kbd", null, "Ctrl ⏎")),
        h("button", { onclick: () => { text.value = EXAMPLES[1]; void run(); } }, "Tables"),
        h("button", { onclick: () => { text.value = EXAMPLES[0]; } }, "Example"))), result);
  },
};
