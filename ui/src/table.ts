// Tables: sort by a click on a heading, filter, show a row on the timeline, copy all.

import { h } from "./dom";
import * as format from "./format";
import type { Cell, Column, Table } from "./types";

const FIRST_ROWS = 300;
const MANY_COLUMNS = 10; // more do not fit on a small screen

export interface TableOptions {
  /** Told the row that was clicked; rows are buttons then. */
  onRow?: (row: Cell[]) => void;
  rowTitle?: string;
  /** Column that gets a bar. */
  bar?: string;
  /** Column that says what a row is about. */
  names?: string;
  filter?: string;
  hidden?: string[];
}

/** A cell as text. */
export function cellText(column: Column, cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "string") return format.shortOf(cell) ?? format.clean(cell, 2000);
  switch (column.kind) {
    case "ns": return format.duration(cell);
    case "change": return `${cell > 0 ? "+" : ""}${format.duration(cell)}`;
    case "pct": return cell.toFixed(1);
    case "bytes": return format.bytes(cell);
    case "int": return column.unit ? `${format.count(cell)}` : cell.toLocaleString("en").replace(/,/g, "\u2009");
    case "f64": return format.group(cell.toFixed(column.decimals));
    default: return String(cell);
  }
}

function heading(column: Column): string {
  if (column.kind === "pct") return `${column.name} (%)`;
  return column.unit ? `${column.name} (${column.unit})` : column.name;
}

/** Text without quotes, commas and formulas that a spreadsheet would run. */
function csv(cell: Cell): string {
  let text = cell === null ? "" : String(cell);
  if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function tableView(table: Table, options: TableOptions = {}): HTMLElement {
  if (table.why && !table.rows.length) return emptyState(table.why);
  const columns = table.columns.map((c, ix) => ({ c, ix })).filter(({ c }) => !options.hidden?.includes(c.name));
  // Of a wide table, what a row is about would be beyond the edge: it comes first, and stays.
  const nameAt = columns.length > MANY_COLUMNS ? columns.findIndex(({ c }) => c.name === (options.names ?? "Name")) : -1;
  const shown = nameAt < 0 ? columns : [columns[nameAt], ...columns.filter((_, i) => i !== nameAt)];
  const sticky = (i: number): string => (nameAt >= 0 && i === 0 ? " stays" : "");
  let sortIx = -1;
  let isUp = false;
  let nShown = FIRST_ROWS;
  const body = h("tbody");
  const foot = h("div", { class: "table-foot" });
  const head = h("tr");
  const barIx = table.columns.findIndex((c) => c.name === (options.bar ?? "Time"));
  const max = Math.max(1e-9, ...table.rows.map((r) => (barIx >= 0 ? Number(r[barIx]) || 0 : 0)));

  const rows = (): Cell[][] => {
    const needle = (options.filter ?? "").toLowerCase();
    let out = table.rows;
    if (needle) out = out.filter((r) => r.some((c) => typeof c === "string" && `${c} ${format.shortOf(c) ?? ""}`.toLowerCase().includes(needle)));
    if (sortIx >= 0) {
      out = [...out].sort((a, b) => {
        const x = a[sortIx];
        const y = b[sortIx];
        const d = typeof x === "number" && typeof y === "number" ? x - y : String(x ?? "").localeCompare(String(y ?? ""), "en", { numeric: true });
        return isUp ? d : -d;
      });
    }
    return out;
  };

  const cell = (c: Column, ix: number, row: Cell[], i: number): HTMLElement => {
    const text = cellText(c, row[ix]);
    const el = h("td", { class: (c.kind === "text" ? "text" : "num") + sticky(i), title: c.kind === "text" && (text.length > 40 || text !== row[ix]) ? format.clean(String(row[ix] ?? ""), 2000) : undefined }, text);
    if (ix === barIx && typeof row[ix] === "number") {
      el.prepend(h("span", { class: "cellbar", style: { width: `${(56 * Math.max(0, row[ix] as number)) / max}px` } }));
    }
    return el;
  };

  const fill = (): void => {
    const all = rows();
    body.replaceChildren(...all.slice(0, nShown).map((row) =>
      h("tr", options.onRow ? {
        class: "go", tabindex: 0, title: options.rowTitle ?? "Show on the timeline",
        onclick: () => options.onRow!(row),
        onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter") options.onRow!(row); },
      } : null, shown.map(({ c, ix }, i) => cell(c, ix, row, i)))));
    const cut = table.n > table.rows.length ? ` (the first ${format.count(table.rows.length)} of ${format.count(table.n)})` : "";
    foot.replaceChildren(`${format.count(all.length)} ${all.length === 1 ? "row" : "rows"}${cut} `);
    if (all.length > nShown) foot.append(h("button", { onclick: () => { nShown += 1000; fill(); } }, "more"));
    foot.append(h("button", { onclick: () => void copy(columns, all) }, "Copy as CSV"));
    head.replaceChildren(...shown.map(({ c, ix }, i) => h("th", {
      class: (c.kind === "text" ? "text" : "num") + sticky(i), title: c.doc, "aria-sort": ix === sortIx ? (isUp ? "ascending" : "descending") : undefined,
    }, h("button", {
      onclick: () => {
        isUp = ix === sortIx ? !isUp : c.kind === "text";
        sortIx = ix;
        fill();
      },
    }, heading(c), ix === sortIx ? (isUp ? " ↑" : " ↓") : ""))));
  };
  fill();
  return h("div", { class: "table-box" }, h("table", null, h("thead", null, head), body), foot);
}

async function copy(columns: { c: Column; ix: number }[], rows: Cell[][]): Promise<void> {
  const lines = [columns.map(({ c }) => csv(heading(c))).join(",")];
  for (const row of rows) lines.push(columns.map(({ ix }) => csv(row[ix])).join(","));
  try {
    await navigator.clipboard.writeText(lines.join("\n") + "\n");
  } catch {
    // A page without the right to the clipboard cannot copy.
  }
}

/** Why there is nothing, in the place where it would be. */
export function emptyState(...lines: string[]): HTMLElement {
  // Commands are shown exactly as they are typed.
  const begun = (line: string): string => (/^lull\b/.test(line) ? line : line.charAt(0).toUpperCase() + line.slice(1));
  return h("div", { class: "empty" }, lines.map((line, i) => h(i ? "div" : "b", null, begun(line))));
}
