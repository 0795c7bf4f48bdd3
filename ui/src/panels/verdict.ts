// Verdict: what the device waits for, what proves it, what a fix would bring.

import { h } from "../dom";
import * as format from "../format";
import { IDLE_FAMILIES, T } from "../theme";
import { emptyState } from "../table";
import type { App } from "../app";
import type { Meta, Opening } from "../types";
import { type Context, type Panel, failure } from "./panel";
import { editorLink, openSource } from "./source";
import { showName } from "./tables";

export interface Prediction {
  step_ns: number;
  low_ns: number;
  high_ns: number;
  ratio: number;
}

export interface Finding {
  id: string;
  title: string;
  family: number;
  fix: string;
  cost_ns: number;
  share: number;
  gain_ns: number;
  confidence: number;
  prediction: Prediction | null;
  assumes?: string; // what the prediction holds under
  is_ceiling?: boolean; // it is the best that can come of it
  at_least?: number; // times as fast, where the work goes on elsewhere
  file?: string;
  line?: number;
  function?: string;
  evidence: { text: string; from: number; to: number; table?: string; n: number }[];
}

/** What would make the time shorter in which the device computes. */
export interface Opportunity {
  id: string;
  title: string;
  text: string;
  fix: string;
  assumes: string;
  touched_ns: number;
  share: number;
  gain_ns: number;
  is_ceiling: boolean;
  prediction: Prediction | null;
}

export interface Verdict {
  state: "known" | "cannot" | "running" | "absent" | "profiled";
  done?: number; // progress, while it runs
  can_ask?: boolean; // what if
  sentence: string;
  detail?: string;
  is_probable?: boolean; // the first cause is a guess:
  unsure?: string; // why,
  settle?: string; // and the command that would tell
  no_prediction?: string;
  missing?: string[];
  waiting_share: number; // of a step in which the device does not compute: idle, or only copies or exchanges
  step_ns: number;
  free_ns?: number; // without the cost of recording: what predictions are compared with
  n_steps: number;
  first: number;
  findings: Finding[];
  opportunities?: Opportunity[]; // the largest gain first
  utilization?: string;
  kernels?: string[]; // full names, the largest first
  window_from?: number; // what was looked at of a long recording
  window_to?: number;
  families: number[]; // share of the step by family
  lane: number;
  open?: Opening;
}

/** Less than this of the time that the device does not compute, and a cause is not what it waits for. */
const MOST = 0.5;

/** What another cause has, where the first one to fix is not what the device waits for most; else null. */
export function elsewhere(v: Verdict): { first: Finding; most: Finding } | null {
  const first = v.findings[v.first];
  const lost = v.waiting_share * v.step_ns;
  // A device that computes all the time waits for nothing.
  if (!first || !v.sentence.includes(" does not compute for ") || first.cost_ns >= MOST * lost) return null;
  const most = v.findings.reduce((a, b) => (b.cost_ns > a.cost_ns ? b : a));
  return { first, most };
}

const answers = new WeakMap<App, Promise<Verdict>>();
const ASK_AGAIN_MS = 500;

function ask(app: App): Promise<Verdict> {
  return app.source.ask<Verdict>("verdict", { f: app.report || undefined });
}

/** Idle time has causes now: its tiles, its share and the picture of the whole run are new. */
async function recolour(app: App, v: Verdict): Promise<void> {
  app.forget((row) => row.kind === "idle" || row.key === "rounds");
  const meta = await app.source.ask<Meta>("meta", { f: app.report || undefined });
  app.meta.minimap = meta.minimap;
  const known = new Map(app.meta.rows.map((row) => [row.key, row]));
  for (const row of meta.rows) {
    const old = known.get(row.key);
    if (old) [old.busy, old.n] = [row.busy, row.n];
  }
  app.openOn(meta, v.open);
  app.changed("verdict");
}

/** While the analysis runs: ask again, show its progress, and colour idle time when it is done. */
function follow(app: App): void {
  window.setTimeout(() => {
    void ask(app).then((v) => {
      answers.set(app, Promise.resolve(v));
      if (v.state === "running") follow(app);
      else void recolour(app, v);
      app.changed("verdict");
    }).catch(() => undefined); // the server is gone, which the page says elsewhere
  }, ASK_AGAIN_MS);
}

/** The answer, if somebody has asked already. */
export function knowVerdict(app: App, v: Verdict): void {
  answers.set(app, Promise.resolve(v));
  if (v.state === "running") follow(app);
}

/** Asked once, for the line on top and for the panel. */
export function verdictOf(app: App): Promise<Verdict> {
  let answer = answers.get(app);
  if (!answer) {
    answer = ask(app);
    answers.set(app, answer);
    void answer.then((v) => { if (v.state === "running") follow(app); }).catch(() => undefined);
  }
  return answer;
}

/** A progress bar. */
export function progress(done: number): HTMLElement {
  const percent = Math.round(done * 100);
  return h("div", { class: "progress", role: "progressbar", "aria-valuenow": percent, title: `${percent} %` }, h("i", { style: { width: `${percent}%` } }));
}

/** Causes that belong to no other family have its name; the rest of it is not known. */
export function familyName(v: Verdict | null, family: number): string {
  const ids = family === IDLE_FAMILIES.length - 1 ? (v?.findings ?? []).filter((f) => f.family === family).map((f) => f.id) : [];
  return ids.join(", ") || IDLE_FAMILIES[family];
}

/** Whether the name of a piece of idle time says why. */
export const isCause = (name: string | undefined): boolean => !!name && name !== "idle" && name !== "unknown";

export function sharesBar(v: Verdict, busy: number): HTMLElement {
  const parts = v.families.map((share, i) => ({ share, i })).filter((p) => p.share > 0.002).sort((a, b) => b.share - a.share);
  return h("div", { class: "shares", title: `of each step: computing ${format.percent(busy)}, ` + parts.map((p) => `${familyName(v, p.i)} ${format.percent(p.share)}`).join(", ") },
    h("i", { style: { width: `${busy * 100}%`, background: T.busy } }),
    parts.map((p) => h("i", { class: p.i === 7 ? "hatched" : "", style: { width: `${p.share * 100}%`, background: T.idle[p.i] } })));
}

function jump(ctx: Context, from: number, to: number): void {
  ctx.app.setRange({ from, to });
  ctx.app.frame({ from, to });
}

/** The kernel that a line of evidence is about: such lines are in the order of v.kernels. */
function kernelOf(v: Verdict, f: Finding, e: Finding["evidence"][0]): string | undefined {
  const lines = f.evidence.filter((x) => x.table === "kernel" && / % of the kernel time, /.test(x.text));
  return v.kernels?.[lines.indexOf(e)];
}

/** Commands between backticks stand out. */
const withCode = (text: string): (string | HTMLElement)[] => format.prose(text).split("`").map((part, ix) => (ix % 2 ? h("code", null, part) : part));

export const fixView = (fix: string): HTMLElement => h("div", { class: "fix" }, h("b", null, "Try: "), withCode(fix));

export function evidence(ctx: Context, v: Verdict, f: Finding): HTMLElement {
  return h("ol", { class: "evidence" }, f.evidence.map((e) => {
    const kernel = kernelOf(v, f, e);
    const go = e.to > e.from ? () => jump(ctx, e.from, e.to) : kernel ? () => void showName(ctx, kernel) : null;
    const text = format.prose(e.text);
    return h("li", null, go ? h("button", { class: "link", title: kernel ?? "Show on the timeline", onclick: go }, text) : text);
  }));
}

/** Where in the program: a click shows the longest piece of it, and copies the place for an editor. */
function place(ctx: Context, f: Finding): HTMLElement | null {
  const where = f.file ? `${f.file}${f.line ? `:${f.line}` : ""}` : "";
  const text = [f.function, where].filter(Boolean).join("  ");
  const at = f.evidence.find((e) => e.to > e.from);
  if (!text) return null;
  if (!at && !where) return h("div", { class: "mono place" }, text);
  return h("div", { class: "mono place" }, h("button", {
    class: "link", title: `Show on the timeline${where ? `, and copy ${where}` : ""}`,
    onclick: () => {
      if (at) jump(ctx, at.from, at.to);
      if (where) void navigator.clipboard?.writeText(where).catch(() => undefined);
    },
  }, text), f.file && f.line ? h("button", { class: "chip", title: "Show the source", onclick: () => openSource(ctx.app, f.file!, f.line!) }, "source") : null, editorLink(ctx.app, f.file, f.line ?? 1));
}

/** The one to fix first, then the one that the sentence names beside it. */
function order(v: Verdict): Finding[] {
  const named = [v.findings[v.first], elsewhere(v)?.most].filter((f): f is Finding => f !== undefined);
  return [...new Set([...named, ...v.findings])];
}

/** What fixing either would bring. */
function predictions(v: Verdict, named: Finding[]): string {
  const then = [...new Set(named)].filter((f) => f.prediction)
    .map((f) => `${format.duration(f.prediction!.step_ns)} without ${f.id} (${f.prediction!.ratio.toFixed(2)} × as fast)${f.is_ceiling ? " at best" : ""}`);
  return then.length ? `A step of ${format.duration(v.step_ns)} would take ${then.join(", ")}.` : "";
}

function card(ctx: Context, v: Verdict, f: Finding): HTMLElement {
  const { app } = ctx;
  const isFirst = f === v.findings[v.first];
  return h("section", { class: `finding${isFirst ? " first-cause" : ""}` },
    h("h3", null, h("i", { class: "swatch", style: { background: T.idle[f.family] } }), f.title),
    h("div", { class: "small" }, `${f.id} · ${format.duration(f.cost_ns)} of each step, ${format.percent(f.share)}`,
      // It orders causes. Below the others it would seem to doubt what was measured.
      isFirst ? h("span", { title: "How likely this is the cause to fix first. The times are measured." }, ` · confidence ${f.confidence.toFixed(2)}`) : null),
    place(ctx, f),
    evidence(ctx, v, f),
    f.fix ? fixView(f.fix) : null,
    f.prediction ? slider(ctx, v, f) : null,
    h("div", { class: "buttons" }, h("button", { onclick: () => void app.search("") .then(() => app.openTab("steps")) }, "By step")));
}

function opportunity(v: Verdict, o: Opportunity): HTMLElement {
  const p = o.prediction;
  return h("section", { class: "finding opportunity" },
    h("h3", null, h("i", { class: "swatch", style: { background: T.busy } }), o.title),
    h("div", { class: "small" }, `${o.id} · ${format.duration(o.touched_ns)} of each step, ${format.percent(o.share)}`),
    h("ol", { class: "evidence" }, h("li", null, format.prose(o.text))),
    fixView(o.fix),
    h("div", { class: "small" }, p
      ? `${format.duration(v.step_ns)} → ${format.duration(p.step_ns)}, ${p.ratio.toFixed(2)} × as fast by replay of the recorded steps, ${o.is_ceiling ? "at best" : `between ${format.duration(p.low_ns)} and ${format.duration(p.high_ns)}`}, if ${o.assumes}`
      : `up to ${format.duration(o.gain_ns)} less of each step, if ${o.assumes}`));
}

/** What a step would take with less of this; asked anew when the slider rests. */
export function slider(ctx: Context, v: Verdict, f: Finding): HTMLElement {
  const { app } = ctx;
  const text = h("span", { class: "strong" });
  const then = h("div", { class: "then" });
  // Both without the cost of recording, or nothing changed would already be faster.
  const now = v.free_ns || v.step_ns;
  const recording = now < v.step_ns * 0.995 ? `; recording made the step ${format.duration(v.step_ns)}` : "";
  const assumes = f.assumes ? ` It assumes that ${format.prose(f.assumes)}.` : "";
  const remove = (left: number): void => { text.textContent = `${format.duration(f.cost_ns)} → ${format.duration(f.cost_ns * left)}`; };
  const say = (p: Prediction, left: number): void => {
    remove(left);
    const least = f.at_least && left === 0 ? `, at least ${f.at_least.toFixed(2)} ×,` : "";
    then.replaceChildren(
      h("span", null, "now"), h("div", { class: "bar-box" }, sharesBar(v, 1 - v.waiting_share)), h("b", null, format.duration(now)),
      h("span", null, "then"), h("div", { class: "bar-box" }, h("div", { class: "shares", style: { width: `${Math.min(100, (100 * p.step_ns) / now)}%` } }, h("i", { style: { width: "100%", background: T.busy } }))), h("b", null, format.duration(p.step_ns)),
      h("div", { class: "small full" }, `${p.ratio.toFixed(2)} × as fast${least} by replay of the recorded steps, between ${format.duration(p.low_ns)} and ${format.duration(p.high_ns)}${f.is_ceiling ? " at best" : ""}${recording}.${assumes}`));
  };
  say(f.prediction!, 0);
  const input = h("input", {
    type: "range", min: 0, max: 100, value: 100, disabled: app.source.isOffline || v.can_ask === false,
    title: app.source.isOffline || v.can_ask === false ? `${app.source.isOffline ? "This file does not contain what that takes: ask about the recording" : "On a report of this size, ask on the command line"}: lull why --what-if ${f.id}=0.5` : undefined, "aria-label": `How much of ${f.title} is removed, in percent`,
    oninput: () => remove(1 - Number(input.value) / 100),
    onchange: () => {
      const left = 1 - Number(input.value) / 100;
      void app.source.ask<Prediction>("whatif", { q: `${f.id}=${left.toFixed(2)}`, f: app.report || undefined })
        .then((p) => say(p, left)).catch((e: Error) => { then.replaceChildren(h("div", { class: "small full" }, e.message)); });
    },
  });
  return h("div", { class: "whatif" }, h("h4", null, "If fixed"), h("div", { class: "row" }, input, text), then);
}

export const verdict: Panel = {
  id: "verdict",
  place: 10,
  title: "Verdict",
  follows: ["verdict"],
  render: async (ctx) => {
    try {
      const v = await verdictOf(ctx.app);
      const tail = [
        v.no_prediction ? h("div", { class: "small" }, v.no_prediction) : null,
        v.window_to ? h("div", { class: "small" }, `The recording is long: the steps from ${format.duration(v.window_from ?? 0)} to ${format.duration(v.window_to)} were looked at; idle time elsewhere has no cause.`) : null,
        v.utilization ? h("div", { class: "small" }, `In these steps ${v.utilization}`) : null,
        v.missing?.length ? h("div", { class: "small" }, `Recording this would help: ${v.missing.join(", ")}`) : null,
      ];
      const other = elsewhere(v);
      if (v.state === "running") return h("div", { class: "empty" }, h("b", null, v.sentence), progress(v.done ?? 0), h("div", null, v.detail ?? ""));
      if (v.state !== "known" && !v.findings.length) return h("div", { class: "empty" }, h("b", null, v.sentence), v.detail ? h("div", null, v.detail) : null, tail);
      return h("div", null,
        v.state !== "known" ? h("div", { class: "empty slim" }, h("b", null, v.sentence), v.detail ? h("div", null, v.detail) : null) : null,
        other ? h("div", { class: "empty slim" }, h("b", null, v.sentence), h("div", null, predictions(v, [other.first, other.most]))) : null,
        v.is_probable ? h("div", { class: "empty slim" }, h("div", null, `Not sure: ${v.unsure}.`), h("div", null, "To be sure: ", h("code", null, v.settle ?? ""))) : null,
        h("div", { class: "columns findings" }, order(v).slice(0, 8).map((f) => card(ctx, v, f)), (v.opportunities ?? []).map((o) => opportunity(v, o))), h("div", { class: "tail" }, tail));
    } catch (e) {
      return failure(e);
    }
  },
};

export const noVerdict = (text: string): HTMLElement => emptyState("Cannot tell", text);
