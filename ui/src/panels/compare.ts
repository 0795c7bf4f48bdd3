// Compare: two reports, before above after, aligned by their steps; and what became of each kernel and call.

import { h } from "../dom";
import * as format from "../format";
import type { App } from "../app";
import { otherOf } from "../others";
import { type Side, Strips, rowsOf } from "../strips";
import { emptyState, tableView } from "../table";
import type { Cell, Column } from "../types";
import { type Context, type Panel, failure } from "./panel";
import type { Steps } from "./steps";
import { showName } from "./tables";
import { type Verdict, verdictOf } from "./verdict";

type Pair = [before: number, after: number];

interface Decision {
  value: Pair;
  change: number | null;
  interval?: Pair;
  is_certain: boolean;
}

interface Item {
  name: string;
  change: string;
  n: Pair;
  time_ns: Pair;
  bytes?: Pair;
}

/** What `lull diff --format json` says. */
interface Diff {
  is_per_step: boolean;
  steps: Pair;
  step_time_ns?: Decision;
  idle_share?: Decision;
  first_cause: [string, string];
  causes: { cause: string; cost_ns: [number | null, number | null]; interval_ns?: Pair }[];
  [kind: string]: unknown;
}

const KINDS: [string, string][] = [["kernels", "kernels"], ["copies", "copies"], ["calls", "calls"], ["ranges", "ranges"], ["ops", "operators"], ["oscalls", "OS calls"]];

const known = new Map<string, Promise<Diff>>();

function diffOf(app: App, other: number): Promise<Diff> {
  const key = `${app.report}:${other}`;
  let answer = known.get(key);
  if (!answer) {
    answer = app.source.ask<Diff>("diff", { other, f: app.report || undefined });
    known.set(key, answer);
  }
  return answer;
}

const column = (n: string, kind: string, doc: string): Column => ({ name: n, kind, doc, decimals: 1 });

/** Names that appeared, vanished or changed. */
function itemsTable(ctx: Context, diff: Diff, kind: string): HTMLElement {
  const items = (diff[kind] as Item[] | undefined) ?? [];
  const per = diff.is_per_step ? "per step" : "in the run";
  if (!items.length) return emptyState("Nothing changed", "All of this kind are as often and as long as before, as far as can be told.");
  const rows = items.map((i): Cell[] => [i.time_ns[0] || null, i.time_ns[1] || null, i.time_ns[1] - i.time_ns[0], i.n[0] || null, i.n[1] || null, i.change, i.name]);
  return tableView({
    name: kind, title: "", summary: "", n: rows.length, rows,
    columns: [column("Before", "ns", `time ${per} in the first report`), column("After", "ns", `time ${per} in the second`), column("Difference", "change", "after minus before"),
      column("N before", "f64", `how many ${per}`), column("N after", "f64", `how many ${per}`), column("Change", "label", "what became of it"), column("Name", "text", "")],
  }, { bar: "", onRow: (row) => void showName(ctx, String(row[6])) });
}

const difference = (ns: number): string => (ns > 0 ? `+${format.duration(ns)}` : format.duration(ns));

/** Whether the difference of a cause can be noise. */
function change(c: Diff["causes"][0]): string {
  const [low, high] = c.interval_ns ?? [0, 0];
  if (!c.interval_ns) return "too few steps to tell";
  return low <= 0 && high >= 0 ? "no visible change" : high < 0 ? "less" : "more";
}

/** Without compute, by cause, per step: what the change did to each, and between which limits. */
function causesView(diff: Diff): HTMLElement | null {
  if (!diff.causes.length) return null;
  const rows = diff.causes.map((c): Cell[] => [c.cost_ns[0] || null, c.cost_ns[1] || null, c.cost_ns[0] === null || c.cost_ns[1] === null ? null : c.cost_ns[1] - c.cost_ns[0],
    c.interval_ns ? `${difference(c.interval_ns[0])} … ${difference(c.interval_ns[1])}` : null, change(c), c.cause]).sort((x, y) => Math.abs(Number(y[2])) - Math.abs(Number(x[2])));
  return h("div", { class: "compare-causes" }, h("h4", null, "Time without compute by cause, per step"), tableView({
    name: "causes", title: "", summary: "", n: rows.length, rows,
    columns: [column("Before", "ns", "per step"), column("After", "ns", "per step"), column("Difference", "change", "after minus before"),
      column("Between", "label", "90 % interval of the difference, from the steps of both"), column("Change", "label", "whether the difference can be noise"), column("Cause", "text", "")],
  }, { bar: "" }));
}

const signed = (v: number): string => `${v > 0 ? "+" : v < 0 ? "−" : "±"}${(100 * Math.abs(v)).toFixed(1)} %`;

/** The sentences of `lull diff`: how much faster, between which limits, and where the bottleneck went. */
function sentences(diff: Diff): HTMLElement | null {
  const step = diff.step_time_ns;
  const idle = diff.idle_share;
  if (!step) return null;
  const change = step.change ?? 0;
  const ratio = change <= 0 ? 1 / (1 + change) : 1 + change;
  const limits = step.interval ? ` on average (${signed(change)}, between ${signed(step.interval[0])} and ${signed(step.interval[1])})` : ": too few steps to tell";
  const [a, b] = diff.first_cause;
  return h("div", { class: "compare-head" },
    h("b", null, !step.is_certain ? "No certain change" : change <= 0 ? `${ratio.toFixed(2)} × as fast` : `${ratio.toFixed(2)} × as slow`), `${limits} · median step ${format.duration(step.value[0])} → ${format.duration(step.value[1])}`,
    idle ? ` · GPU idle ${format.percent(idle.value[0])} → ${format.percent(idle.value[1])} of it` : "",
    a || b ? h("div", null, a === b ? `The bottleneck is ${a} in both.` : `The bottleneck moved from ${a || "nothing"} to ${b || "nothing"}.`) : null);
}

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

function headline(a: Steps, b: Steps, verdicts: (Verdict | null)[]): HTMLElement {
  const [ma, mb] = [a, b].map((x) => x.steady?.median_ns ?? 0);
  if (!ma || !mb) return h("div", { class: "compare-head small" }, "Not both reports have steps: whole runs are shown above each other, and only totals can be compared.");
  const waits = verdicts.map((v) => (v?.n_steps ? format.percent(v.waiting_share) : "?"));
  return h("div", { class: "compare-head" },
    h("b", null, mb < ma ? `${(ma / mb).toFixed(2)} × as fast` : `${(mb / ma).toFixed(2)} × as slow`),
    ` · median step ${format.duration(ma)} → ${format.duration(mb)} · the device does not compute for ${waits[0]} → ${waits[1]} of each step`);
}

/** Names of both, paired, a kind at a time. */
async function details(ctx: Context, diff: Diff | null, ix: number): Promise<HTMLElement> {
  const { app } = ctx;
  const names = `${app.meta.reports[app.report]} → ${app.meta.reports[ix]}`;
  if (!diff) return h("div", { class: "small compare-head" }, `${names}: \`lull diff\` says what became of each kernel and call.`);
  const kinds = KINDS.filter(([id]) => Array.isArray(diff[id]));
  const first = kinds.find(([id]) => (diff[id] as Item[]).length) ?? kinds[0];
  await app.names.learn().catch(() => undefined);
  const body = h("div", null, itemsTable(ctx, diff, first[0]));
  return h("div", null, h("div", { class: "panel-bar" }, h("div", { class: "choices" }, kinds.map(([id, label]) => h("button", {
    class: id === first[0] ? "on" : "",
    onclick: (e: Event) => {
      for (const x of (e.target as HTMLElement).parentElement!.children) x.classList.toggle("on", x === e.target);
      body.replaceChildren(itemsTable(ctx, diff, id));
    },
  }, `${label} ${(diff[id] as Item[]).length}`))), h("span", { class: "small" }, `${names}, ${diff.is_per_step ? "per step" : "whole runs"}`)), body);
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
      const diff = await diffOf(app, ix).catch(() => null);
      const top = (diff && sentences(diff)) ?? headline(a, b, verdicts);
      return h("div", { class: "panel compare" }, top, aligned(ctx, other, a.steps, b.steps), diff ? causesView(diff) : null, await details(ctx, diff, ix));
    } catch (e) {
      return failure(e);
    }
  },
};
