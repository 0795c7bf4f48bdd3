// Compare: two reports, before above after, aligned by their steps; and what became of each kernel and call.

import { h } from "../dom";
import * as format from "../format";
import type { App } from "../app";
import { otherOf } from "../others";
import { type Side, Strips, rowsOf } from "../strips";
import { emptyState, tableView } from "../table";
import type { Cell, Column, Table } from "../types";
import { type Context, type Panel, failure } from "./panel";
import { report, showName } from "./tables";
import { type Verdict, verdictOf } from "./verdict";

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
      column("Change", "change", "after minus before"), column("N before", "int", "how many"), column("N after", "int", "how many"), column("Name", "text", "")],
  };
  if (!rows.length) return emptyState("Nothing to compare", before.why ?? after.why ?? "");
  return tableView(table, { bar: "", onRow: (row) => void showName(ctx, String(row[5])) });
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** A pair of steps: of the same number where both have it, else of the same place. */
function partner(step: number[], ix: number, b: number[][]): number[] {
  return b.find((s) => s[0] === step[0]) ?? b[Math.min(ix, b.length - 1)];
}

/** Before above after, aligned at the start of a step; zoom and place are shared. */
function aligned(ctx: Context, other: App, a: number[][], b: number[][]): HTMLElement {
  const { app, timeline } = ctx;
  const box = h("div");
  const number = h("b");
  let ix = Math.min(a.length - 1, Math.floor(a.length / 2));
  let strips: Strips | null = null;
  const name = (x: App): string => x.meta.name.replace(/\.lull$/, "");
  const pick = (side: Side, lane: number, t: number): void => {
    if (side.app !== app) return;
    app.openTo(app.rowOfLane[lane]);
    app.reveal({ from: t, to: t });
    timeline.showRow(app.rowOfLane[lane]);
    void app.selectAt(lane, t);
  };
  const draw = (): void => {
    const [x, y] = a.length && b.length ? [a[ix], partner(a[ix], ix, b)] : [[0, app.meta.from, app.meta.to], [0, other.meta.from, other.meta.to]];
    const length = Math.max(x[2] - x[1], y[2] - y[1]);
    const first = { from: -length * 0.04, to: length * 1.04 };
    const view = strips ? strips.view : null;
    strips = new Strips([
      { app, title: "before", note: name(app), anchor: x[1], rows: rowsOf(app) },
      { app: other, title: "after", note: name(other), anchor: y[1], rows: rowsOf(other) },
    ], first, pick);
    if (view) strips.show(view);
    number.textContent = a.length && b.length ? `step ${x[0]}: ${format.duration(x[2] - x[1])} → ${format.duration(y[2] - y[1])}` : "whole run";
    box.replaceChildren(strips.el);
  };
  const go = (d: number): void => { ix = Math.max(0, Math.min(a.length - 1, ix + d)); draw(); };
  draw();
  return h("div", null, h("div", { class: "strips-bar" },
    a.length && b.length ? [h("button", { onclick: () => go(-1), "aria-label": "Step before" }, "‹"), h("button", { onclick: () => go(1), "aria-label": "Next step" }, "›")] : null, number,
    h("span", { class: "space" }), h("span", { class: "small hint" }, "Ctrl wheel zooms, drag pans, double click: the step"),
    h("button", { onclick: () => strips?.zoom(0.6), "aria-label": "Zoom in" }, "+"), h("button", { onclick: () => strips?.zoom(1 / 0.6), "aria-label": "Zoom out" }, "−"),
    h("button", { onclick: () => strips?.reset() }, "Step")), box);
}

/** Without warm-up: the first steps of a run can be a thousand times as long. */
function steady(steps: number[][], v: Verdict | null): number[][] {
  const left = v?.n_steps ? steps.length - v.n_steps : 0;
  return left > 0 && left <= steps.length / 2 ? steps.slice(left) : steps;
}

function headline(a: number[][], b: number[][], verdicts: (Verdict | null)[]): HTMLElement {
  const [ma, mb] = [steady(a, verdicts[0]), steady(b, verdicts[1])].map((x) => median(x.map((s) => s[2] - s[1])));
  if (!ma || !mb) return h("div", { class: "compare-head small" }, "Not both reports have steps: whole runs are shown above each other, and only totals can be compared.");
  const waits = verdicts.map((v) => (v?.n_steps ? format.percent(v.waiting_share) : "?"));
  return h("div", { class: "compare-head" },
    h("b", null, mb < ma ? `${(ma / mb).toFixed(2)} × as fast` : `${(mb / ma).toFixed(2)} × as slow`),
    ` · median step ${format.duration(ma)} → ${format.duration(mb)} · the device does not compute for ${waits[0]} → ${waits[1]} of each step`);
}

export const compare: Panel = {
  id: "compare",
  place: 120,
  title: "Compare",
  isTall: true,
  isAbsent: (app) => app.meta.reports.length < 2 || !!app.meta.is_job,
  render: async (ctx) => {
    const { app } = ctx;
    if (app.meta.is_job) return emptyState("These are ranks of one job", "The Ranks panel shows them above each other. To compare two recordings: lull view before.lull after.lull");
    const ix = app.meta.reports.findIndex((_, i) => i !== app.report);
    if (ix < 0) {
      return emptyState("One report is open", "Give a second one to compare with: lull view before.lull after.lull");
    }
    try {
      const [a, b] = await Promise.all([app.report, ix].map((f) => app.source.ask<Steps>("steps", { f: f || undefined })));
      const other = await otherOf(app, ix);
      const verdicts = await Promise.all([app, other].map((x) => verdictOf(x).catch(() => null)));
      const body = h("div");
      const choose = async (name: string): Promise<void> => { body.replaceChildren(await diff(ctx, name, ix)); };
      await choose("cuda_gpu_kern_sum");
      return h("div", { class: "panel compare" }, headline(a.steps, b.steps, verdicts), aligned(ctx, other, a.steps, b.steps),
        h("div", { class: "panel-bar" }, h("div", { class: "choices" },
          [["cuda_gpu_kern_sum", "kernels"], ["cuda_api_sum", "calls"]].map(([id, label]) => h("button", {
            onclick: (e: Event) => {
              for (const x of (e.target as HTMLElement).parentElement!.children) x.classList.toggle("on", x === e.target);
              void choose(id);
            }, class: id === "cuda_gpu_kern_sum" ? "on" : "",
          }, label))), h("span", { class: "small" }, `${app.meta.reports[app.report]} → ${app.meta.reports[ix]}`)), body);
    } catch (e) {
      return failure(e);
    }
  },
};
