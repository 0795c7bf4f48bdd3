// Compare: two reports side by side, before and after.

import { h } from "../dom";
import * as format from "../format";
import { T } from "../theme";
import { emptyState, tableView } from "../table";
import type { Cell, Column, Table } from "../types";
import { type Context, type Panel, failure } from "./panel";
import { report, showName } from "./tables";

interface Steps {
  steps: number[][];
}

function sumsOf(table: Table): Map<string, [number, number]> {
  const name = table.columns.findIndex((c) => c.name === "Name");
  const total = table.columns.findIndex((c) => c.name === "Total Time");
  const n = table.columns.findIndex((c) => c.name === "Instances" || c.name === "Num Calls");
  return new Map(table.rows.map((r) => [String(r[name]), [Number(r[total]), Number(r[n])]]));
}

async function diff(ctx: Context, name: string, other: number): Promise<HTMLElement> {
  const [before, after] = await Promise.all([report(ctx, name, false, ctx.app.report), report(ctx, name, false, other)]);
  const a = sumsOf(before);
  const b = sumsOf(after);
  const column = (n: string, kind: string, doc: string): Column => ({ name: n, kind, doc, decimals: 2 });
  const rows = [...new Set([...a.keys(), ...b.keys()])].map((key): Cell[] => {
    const [ta, na] = a.get(key) ?? [0, 0];
    const [tb, nb] = b.get(key) ?? [0, 0];
    return [ta || null, tb || null, tb - ta, na || null, nb || null, key];
  }).sort((x, y) => Math.abs(Number(y[2])) - Math.abs(Number(x[2])));
  const table: Table = {
    name, title: "", summary: "", n: rows.length, rows,
    columns: [column("Before", "ns", "total time in the first report"), column("After", "ns", "total time in the second"),
      column("Change", "ns", "after less before"), column("N before", "int", "how many"), column("N after", "int", "how many"), column("Name", "text", "")],
  };
  if (!rows.length) return emptyState("Nothing to compare", before.why ?? after.why ?? "");
  return tableView(table, { bar: "", onRow: (row) => void showName(ctx, String(row[5])) });
}

/** Steps of both, drawn to one scale: before above after. */
function bars(label: string, steps: number[][], longest: number): HTMLElement {
  const shown = steps.slice(0, 400);
  return h("div", { class: "compare-row" }, h("span", null, label), h("div", { class: "compare-bars" }, shown.map((s) => h("i", {
    title: `step ${s[0]}: ${format.duration(s[2] - s[1])}`, style: { height: `${(100 * (s[2] - s[1])) / longest}%`, background: T.work[0] },
  }))));
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

export const compare: Panel = {
  id: "compare",
  title: "Compare",
  render: async (ctx) => {
    const { app } = ctx;
    const other = app.meta.reports.findIndex((_, ix) => ix !== app.report);
    if (other < 0) {
      return emptyState("One report is open", "Give a second one to compare with: lull view before.lull after.lull");
    }
    try {
      const [a, b] = await Promise.all([app.report, other].map((f) => app.source.ask<Steps>("steps", { f: f || undefined })));
      const lengths = [a, b].map((x) => x.steps.map((s) => s[2] - s[1]));
      const longest = Math.max(1, ...lengths.flat());
      const [ma, mb] = lengths.map(median);
      const busy = [a, b].map((x) => x.steps.reduce((t, s) => t + s[3], 0) / Math.max(1, x.steps.reduce((t, s) => t + s[2] - s[1], 0)));
      const body = h("div");
      const choose = async (name: string): Promise<void> => { body.replaceChildren(await diff(ctx, name, other)); };
      await choose("cuda_gpu_kern_sum");
      const head = ma && mb ? h("div", { class: "compare-head" },
        h("b", null, mb < ma ? `${(ma / mb).toFixed(2)} × as fast` : `${(mb / ma).toFixed(2)} × as slow`),
        ` · median step ${format.duration(ma)} → ${format.duration(mb)} · device busy ${format.percent(busy[0])} → ${format.percent(busy[1])}`) : h("div", { class: "small" }, "Without steps in both, only totals can be compared.");
      return h("div", { class: "panel compare" }, head,
        ma && mb ? h("div", null, bars("before", a.steps, longest), bars("after", b.steps, longest)) : null,
        h("div", { class: "panel-bar" }, h("div", { class: "choices" },
          [["cuda_gpu_kern_sum", "kernels"], ["cuda_api_sum", "calls"]].map(([id, label]) => h("button", {
            onclick: (e: Event) => {
              for (const x of (e.target as HTMLElement).parentElement!.children) x.classList.toggle("on", x === e.target);
              void choose(id);
            }, class: id === "cuda_gpu_kern_sum" ? "on" : "",
          }, label))), h("span", { class: "small" }, `${app.meta.reports[app.report]} → ${app.meta.reports[other]}`)), body);
    } catch (e) {
      return failure(e);
    }
  },
};
