// Selection: all about the event, the gap or the range that is selected.

import { h } from "../dom";
import type { App } from "../app";
import { againstMedian, areaView, aroundFacts, kindView, pathView } from "../depth";
import * as format from "../format";
import { goToEvent } from "../go";
import { nextGap, neighbour } from "../keys";
import { IDLE_FAMILIES, T } from "../theme";
import { receiptView } from "../receipt";
import { emptyState } from "../table";
import type { Frame, Link, Selected } from "../types";
import { listEvents } from "./events";
import { type Context, type Panel, failure } from "./panel";
import { placeView } from "./source";
import { report, showName } from "./tables";
import { evidence, fixView, isCause, slider, verdictOf } from "./verdict";

const HIDDEN_ZERO = new Set([
  "graph_id", "graph_node_id", "ret", "flags", "payload_type", "payload", "cluster_x", "cluster_y", "cluster_z", "category", "color",
  "local_bytes", "static_shared_bytes", "dynamic_shared_bytes", "external_id", "forward_tid", "src_device_id", "dst_device_id", "value",
]);
const WORDS: Record<string, Record<number, string>> = {
  copy_kind: { 1: "host to device", 2: "device to host", 8: "within a device", 9: "host to host", 10: "device to device" },
  src_kind: { 1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed", 6: "static", 7: "managed static" },
  dst_kind: { 1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed", 6: "static", 7: "managed static" },
  end_reason: { 1: "it waits", 2: "preempted", 3: "ended", 4: "recording ended" },
  api: { 1: "driver", 2: "runtime" },
};

function value(name: string, v: string | number | Frame[], unit?: string): string {
  if (Array.isArray(v)) return "";
  if (typeof v === "string") return format.clean(v, 4000);
  const word = WORDS[name]?.[v];
  if (word) return word;
  if (unit) return format.value(v, unit);
  return String(v);
}

/** Fields that belong together become one: grid_x, grid_y, grid_z. */
function fieldsOf(s: Selected): [string, string][] {
  const out: [string, string][] = [];
  const shapes = new Map<string, number[]>();
  for (const [name, v, unit] of s.fields ?? []) {
    const part = /^(grid|block|cluster)_([xyz])$/.exec(name);
    if (part) {
      if (!shapes.has(part[1])) out.push([part[1], ""]);
      shapes.set(part[1], [...(shapes.get(part[1]) ?? []), Number(v)]);
      continue;
    }
    if ((v === 0 && HIDDEN_ZERO.has(name)) || (v === s.name && typeof v === "string")) continue;
    out.push([name.replace(/_(ns|bytes)$/, "").replace(/_/g, " "), value(name, v, unit)]);
  }
  return out.map(([name, text]): [string, string] => (shapes.has(name) ? [name, shapes.get(name)!.join(" × ")] : [name, text]))
    .filter(([name, text]) => text !== "0 × 0 × 0" && text !== "" && name !== "")
    .sort((a, b) => Number(a[0] === "mangled name") - Number(b[0] === "mangled name"));
}

/** A frame a line, the innermost first; what the program itself wrote stands out, and leads to its source. */
export function stackView(app: App, frames: Frame[]): HTMLElement {
  return h("ol", { class: "stack" }, frames.map(([name, place, isOwn]) => h("li", { class: isOwn ? "own" : "", title: format.clean(place, 400) },
    h("span", { class: "mono" }, format.clean(name || "?", 200)), placeView(app, place))));
}

function framesOf(s: Selected): Frame[] {
  const stack = (s.fields ?? []).find(([name]) => name === "stack")?.[1];
  return Array.isArray(stack) ? stack : [];
}

/** A moment on this page; the time that commands have for it when the pointer is there. */
function momentView(app: App, t: number): HTMLElement {
  return h("span", { title: `In the file, as lull stats and Query count: ${app.inFile(t)} ns` }, format.moment(t - app.meta.from, 10));
}

/** Commands count from another moment than the page. */
function copyTimes(app: App, s: Selected): HTMLElement {
  const text = `--filter-time=${app.inFile(s.start)}/${app.inFile(s.end)}`;
  return h("button", { title: `For lull stats and lull export: ${text}`, onclick: () => void navigator.clipboard?.writeText(text).catch(() => undefined) }, "Copy time");
}

function pairs(rows: [string, string | Node][]): HTMLElement {
  return h("div", { class: "pairs" }, rows.flatMap(([k, v]) => [h("span", null, k), h("span", { class: "mono" }, v)]));
}

/** What is known about the cause of a gap: the evidence of its kind, and what its fix would bring. */
async function causeOf(ctx: Context, s: Selected): Promise<HTMLElement[]> {
  const v = await verdictOf(ctx.app).catch(() => null);
  const f = v?.findings.find((x) => x.id === s.name);
  if (!v || !f) {
    return [h("section", null, h("h4", null, "Why"), h("div", { class: "small" },
      !isCause(s.name) ? "The recording does not show why." : `${s.name}: too little time to be reported as a finding.`))];
  }
  return [
    h("section", null, h("h4", null, `Why: ${f.id}`), h("div", null, f.title), h("div", { class: "small" },
      `${format.duration(f.cost_ns)} of each step, ${format.percent(f.share)}`), evidence(ctx, v, f)),
    h("section", null, f.prediction ? slider(ctx, v, f) : h("h4", null, "If fixed"), f.fix ? fixView(f.fix) : null),
  ];
}

const WORK = ["kernel", "copy", "memset", "graph", "call", "os", "range", "op", "pycall", "collective"];

const RELATIONS: Record<Link["rel"], string> = {
  call: "launched it", work: "was launched", awaited: "was waited for", waiter: "waited for it", producer: "worked meanwhile", next: "ended it",
};

function goTo(ctx: Context, lane: number, start: number, end: number): void {
  void goToEvent(ctx.app, ctx.timeline, { lane, start, end });
}

const OFFLINE_WAITS = "This file does not contain which thread waited for which; `lull view FILE` on the recording shows it.";

function linkList(ctx: Context, links: Link[]): HTMLElement {
  const { app } = ctx;
  const where = (l: Link): string => {
    const row = app.meta.rows[app.rowOfLane[l.lane]];
    return l.rel === "producer" && row && row.parent >= 0 ? ` in ${app.meta.rows[row.parent].title}` : "";
  };
  return h("ul", { class: "links" }, links.slice(0, 20).map((l) => h("li", null,
    h("button", { class: "link", title: format.clean(l.name, 400), onclick: () => goTo(ctx, l.lane, l.start, l.end) }, format.short(l.name)),
    h("span", { class: "small" }, ` ${RELATIONS[l.rel]}${where(l)}, ${format.duration(l.end - l.start)}`))));
}

/** When the thread or stream of a row had no event of this kind: longest gaps first. */
async function gapsOf(ctx: Context, s: Selected): Promise<HTMLElement | null> {
  const { app } = ctx;
  const row = app.meta.rows[app.rowOfLane[s.lane]];
  if (!row || ["idle", "device", "projected", "sample", "pysample", "mark"].includes(row.kind)) return null;
  const answer = await app.source.ask<{ n: number; gaps: [number, number, number][] }>("gaps", { lane: row.lane, n: 12, between: 1, f: app.report || undefined }).catch(() => null);
  if (!answer?.gaps.length) return null;
  const longest = answer.gaps[0][1] - answer.gaps[0][0];
  return h("section", null, h("h4", null, `Longest gaps of ${row.title}`), h("div", { class: "gaps" }, answer.gaps.map(([from, to]) => h("button", {
    class: "gap", title: "Show on the timeline", onclick: () => goTo(ctx, row.lane, from, to),
  }, h("span", { class: "mono" }, format.duration(to - from)), h("i", { style: { width: `${(90 * (to - from)) / longest}%` } }), h("span", { class: "small" }, `at ${format.moment(from - app.meta.from, (app.meta.to - app.meta.from) / 2000)}`)))));
}

/** Which step it is in, by the row of steps. */
async function stepOf(ctx: Context, s: Selected): Promise<string> {
  const { app } = ctx;
  const steps = app.meta.rows.find((r) => r.kind === "step" && app.pinned.includes(r.key));
  if (!steps || app.meta.rows[app.rowOfLane[s.lane]] === steps) return "";
  const found = await app.source.ask<Selected>("event", { lane: steps.lane, t: Math.round((s.start + s.end) / 2), f: app.report || undefined }).catch(() => null);
  return found?.type === "event" ? found.name ?? "" : "";
}

/** A kernel among all of its name: is it a slow one? */
async function amongItsKind(ctx: Context, s: Selected): Promise<[string, string][]> {
  const table = await report(ctx, "cuda_gpu_kern_sum", false).catch(() => null);
  const ix = (name: string): number => table?.columns.findIndex((c) => c.name === name) ?? -1;
  const row = table?.rows.find((r) => r[ix("Name")] === s.name);
  if (!row || ix("Med") < 0) return [];
  const [n, med, min, max] = ["Instances", "Med", "Min", "Max"].map((name) => Number(row[ix(name)]));
  return [["of this name", `${format.count(n)} in the run, median ${format.duration(med)}, ${format.duration(min)} to ${format.duration(max)}`],
    ["this one", `${((s.end - s.start) / Math.max(1, med)).toFixed(2)} × the median`]];
}

async function eventView(ctx: Context, s: Selected): Promise<HTMLElement> {
  const { app, timeline } = ctx;
  await app.names.learn().catch(() => undefined);
  const row = app.meta.rows[app.rowOfLane[s.lane]];
  const owner = row && row.parent >= 0 ? app.meta.rows[row.parent].title : "";
  const isIdle = row?.kind === "idle" && s.type === "event";
  const isBusy = row?.kind === "idle" && s.type === "gap";
  const isGap = s.type === "gap" || isIdle;
  const length = s.end - s.start;
  const colour = isIdle ? T.idle[s.class ?? 7] : row?.kind === "kernel" ? T.work[s.class ?? 7] : T.accent;
  const title = isBusy ? `${owner.split(" ").slice(0, 2).join(" ")} works for ${format.duration(length)}` : isIdle ? `${owner.split(" ").slice(0, 2).join(" ")} idle ${format.duration(length)}` : s.type === "gap" ? `Nothing for ${format.duration(length)}` : format.shortOf(s.name ?? "") ?? format.clean(s.name ?? "", 4000);
  const facts: [string, string | Node][] = [];
  if (!isGap) facts.push(["duration", format.duration(length)]);
  facts.push(["from", momentView(app, s.start)], ["to", momentView(app, s.end)]);
  const step = s.type === "event" ? await stepOf(ctx, s) : "";
  if (step) facts.push(["in", step]);
  if (row?.kind === "kernel" && s.type === "event") facts.push(...(await amongItsKind(ctx, s)));
  facts.push(...aroundFacts(ctx, s));
  if (!isIdle) facts.push(["where", `${owner ? owner + " · " : ""}${row?.title ?? ""}`]);
  if (isIdle && isCause(s.name)) facts.push(["cause", `${s.name}${s.class === 7 ? "" : ` (${IDLE_FAMILIES[s.class ?? 7]})`}`]);
  if (s.before) facts.push(["before", format.short(s.before)]);
  if (s.after) facts.push(["after", format.short(s.after)]);
  const links = s.links ?? [];
  const call = links.find((l) => l.rel === "call");
  if (call && s.start >= call.end) facts.push(["queued", format.duration(s.start - call.end)]);
  const fullName: [string, string | Node][] = s.name && format.shortOf(s.name) ? [["full name", h("span", { class: "full-name", tabindex: 0 }, format.clean(s.name, 4000))]] : [];
  const buttons = h("div", { class: "buttons" },
    isGap ? h("button", { class: "primary", onclick: () => void nextGap(app, timeline, 1) }, "Next gap like this ", h("kbd", null, "N"))
      : h("button", { class: "primary", title: "The next one of this name", onclick: () => void neighbour(app, timeline, 1, true) }, "Next ", h("kbd", null, "]")),
    h("button", { onclick: () => app.frame({ from: s.start, to: s.end }) }, "Zoom ", h("kbd", null, "F")),
    copyTimes(app, s),
    s.name && !isGap ? h("button", { onclick: () => void showName(ctx, s.name!) }, "Find all") : null,
    row && s.lane >= 0 && !isGap ? h("button", { title: "All events of this row", onclick: () => listEvents(ctx, row.key) }, "List row") : null);
  if (isIdle) {
    return h("div", { class: "columns" }, h("section", { class: "first" },
      h("h3", null, h("i", { class: "swatch", style: { background: colour } }), title), buttons, pairs(facts), links.length ? linkList(ctx, links) : app.source.isOffline ? h("div", { class: "small" }, OFFLINE_WAITS) : null), await receiptView(ctx, { from: s.start, to: s.end }, true), await causeOf(ctx, s));
  }
  const hasReceipt = !isBusy && (isGap || ["step", "range", "projected"].includes(row?.kind ?? "")) && length > 0;
  return h("div", { class: "columns" },
    h("section", { class: "first" }, h("h3", { class: isGap ? "" : "mono" }, h("i", { class: "swatch", style: { background: colour } }), title), buttons, pairs(facts)),
    row?.kind === "step" ? [await againstMedian(ctx, s), await pathView(ctx, s)] : WORK.includes(row?.kind ?? "") && s.type === "event" ? kindView(ctx, s) : null,
    hasReceipt ? await receiptView(ctx, { from: s.start, to: s.end }) : null,
    framesOf(s).length ? h("section", null, h("h4", null, "Call stack"), stackView(app, framesOf(s))) : null,
    hasReceipt && !fieldsOf(s).length && !fullName.length ? null : h("section", null, h("h4", null, "Details"),
      fieldsOf(s).length || fullName.length ? pairs([...fullName, ...fieldsOf(s)]) : h("div", { class: "small" }, isBusy ? "Between two pieces of idle time; the rows of the device show with what." : "Nothing else was recorded about it.")),
    (framesOf(s).length || hasReceipt) && !links.length ? null : h("section", null, h("h4", null, "Links"), links.length ? linkList(ctx, links) : h("div", { class: "small" }, app.source.isOffline ? `No call or work is linked to it. ${OFFLINE_WAITS}` : "No call, work or wait is linked to it.")),
    await gapsOf(ctx, s));
}

async function rangeView(ctx: Context, s: Selected): Promise<HTMLElement> {
  const { app } = ctx;
  const facts: [string, string | Node][] = [
    ["length", format.duration(s.end - s.start)],
    ["from", momentView(app, s.start)],
    ["to", momentView(app, s.end)],
  ];
  return h("div", { class: "columns" },
    h("section", { class: "first" }, h("h3", null, `Measured ${format.duration(s.end - s.start)}`), pairs(facts),
      h("div", { class: "buttons" }, h("button", { class: "primary", onclick: () => app.frame({ from: s.start, to: s.end }) }, "Zoom ", h("kbd", null, "F")),
        h("button", { onclick: () => app.openTab("flame") }, "Flame graph"),
        copyTimes(app, s),
        h("button", { onclick: () => { app.setRange(null); app.select(null); } }, "Clear ", h("kbd", null, "Esc")))),
    await areaView(ctx, { from: s.start, to: s.end }),
    await receiptView(ctx, { from: s.start, to: s.end }));
}

export const selection: Panel = {
  id: "selection",
  place: 30,
  title: "Selection",
  follows: ["selection"],
  render: async (ctx) => {
    const s = ctx.app.selection;
    if (!s) return emptyState("Nothing is selected", "Click an event or a gap, or drag over the rows to measure a range.");
    try {
      return s.type === "range" ? await rangeView(ctx, s) : await eventView(ctx, s);
    } catch (e) {
      return failure(e);
    }
  },
};
