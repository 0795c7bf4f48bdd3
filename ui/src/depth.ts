// More about what is selected: a kernel among those of its name and where it comes from, a step against the median one,
// what each row of an area did.

import { h } from "./dom";
import * as format from "./format";
import { goToEvent } from "./go";
import { type Events, lengthsView } from "./lengths";
import { listEvents } from "./panels/events";
import type { Context } from "./panels/panel";
import { placeView } from "./panels/source";
import { type Steps, stepsOf } from "./panels/steps";
import { familyName, verdictOf } from "./panels/verdict";
import { receiptOf } from "./receipt";
import { IDLE_FAMILIES, T } from "./theme";
import type { Around, Path, Selected, Span } from "./types";

const AROUND: Record<string, string> = { op: "operator", range: "in range", pycall: "function", line: "line" };

function aroundText(s: Selected, a: Around): string {
  if (a.kind !== "line") return format.short(a.name);
  const call = s.links?.find((l) => l.rel === "call");
  const far = (call?.start ?? s.start) - a.start;
  const when = a.start === (call?.start ?? s.start) ? "" : `, sampled ${format.duration(Math.abs(far))} ${far > 0 ? "before" : "after"}`;
  return `${format.clean(a.name, 80)} ${(a.place ?? "").replace(/^.*\/(?=[^/]+$)/, "")}${when}`;
}

/** Operator, range and line that it belongs to; each leads there. */
export function aroundFacts(ctx: Context, s: Selected): [string, Node][] {
  return (s.around ?? []).map((a): [string, Node] => [AROUND[a.kind] ?? a.kind, a.kind === "line" && a.place ? placeView(ctx.app, a.place, aroundText(s, a)) : h("button", {
    class: "link", title: format.clean(a.place ?? a.name, 400), onclick: () => void goToEvent(ctx.app, ctx.timeline, a),
  }, aroundText(s, a))]);
}

/** All of its name: how long they are, and the slowest. Of millions that takes a moment: the rest is shown meanwhile. */
export function kindView(ctx: Context, s: Selected): HTMLElement | null {
  if (s.nameId === undefined) return null;
  const box = h("section", { class: "kind" }, h("h4", null, "All of this name"), h("div", { class: "small" }, "…"));
  void fillKind(ctx, s, box);
  return box;
}

async function fillKind(ctx: Context, s: Selected, box: HTMLElement): Promise<void> {
  const { app, timeline } = ctx;
  const row = app.meta.rows[app.rowOfLane[s.lane]];
  const answer = await app.source.ask<Events>("events", { lane: s.lane, everywhere: 1, name: s.nameId, by: "length", down: 1, n: 5, f: app.report || undefined }).catch(() => null);
  if (!answer || answer.n < 2) {
    box.remove();
    return;
  }
  const [slowest] = answer.rows;
  box.replaceChildren(h("h4", null, `All ${format.count(answer.n)} of this name`), lengthsView(answer, s.end - s.start) ?? "",
    h("div", { class: "small" }, `together ${format.duration(answer.ns)}; the slowest takes ${format.duration(slowest[2] - slowest[1])}`),
    h("div", { class: "buttons" },
      h("button", { onclick: () => void goToEvent(app, timeline, { lane: slowest[0], start: slowest[1], end: slowest[2] }) }, "To the slowest"),
      h("button", { onclick: () => listEvents(ctx, row.key, [s.nameId!, s.name ?? ""]) }, "List them")));
}

const signed = (ns: number): string => `${ns > 0 ? "+" : ns < 0 ? "−" : "±"}${format.duration(Math.abs(ns))}`;

/** What a step spent more or less than the one of median length. */
export async function againstMedian(ctx: Context, s: Selected): Promise<HTMLElement | null> {
  const { app } = ctx;
  const answer: Steps | null = await stepsOf(app, { from: Math.max(0, Math.floor(s.start)), to: Math.ceil(s.end) }).catch(() => null);
  const median = answer?.median;
  const self = answer?.steps.find((x) => x[1] <= (s.start + s.end) / 2 && x[2] > (s.start + s.end) / 2);
  if (!answer || !median || !self || self[1] === median[1]) return null;
  const v = await verdictOf(app).catch(() => null);
  const names = ["computing", ...IDLE_FAMILIES.map((_, c) => familyName(v, c))];
  const parts = names.map((name, ix) => ({ name, here: self[4 + ix], there: median[4 + ix] })).filter((p) => p.here || p.there);
  const [mine, other] = await Promise.all([receiptOf(app, { from: self[1], to: self[2] }), receiptOf(app, { from: median[1], to: median[2] })]).catch(() => [null, null]);
  const kernels = (r: typeof mine): number => r?.devices.reduce((n, d) => n + d.kernels.n, 0) ?? 0;
  const rows = parts.sort((a, b) => Math.abs(b.here - b.there) - Math.abs(a.here - a.there));
  const cells = (name: string, here: string, there: string, d: string): HTMLElement => h("tr", null, h("td", { class: "text" }, name), [here, there, d].map((t) => h("td", { class: "num" }, t)));
  return h("section", null, h("h4", null, "Against the median step"),
    h("table", { class: "against" }, h("thead", null, h("tr", null, ["", "this", `step ${median[0]}`, "difference"].map((t) => h("th", { class: t ? "num" : "text" }, t)))),
      h("tbody", null, cells("whole step", format.duration(self[2] - self[1]), format.duration(median[2] - median[1]), signed(self[2] - self[1] - (median[2] - median[1]))),
        rows.map((p) => cells(p.name, format.duration(p.here), format.duration(p.there), signed(p.here - p.there))),
        mine && other ? cells("kernels", format.count(kernels(mine)), format.count(kernels(other)), String(kernels(mine) - kernels(other)).replace("-", "−")) : null)),
    h("div", { class: "buttons" }, h("button", { onclick: () => void goToEvent(app, ctx.timeline, { lane: s.lane, start: median[1], end: median[2] }) }, "To the median step")));
}

const PATH: Record<string, string> = { work: "device works", queue: "queued on the device", thread: "threads work", wait: "threads wait", return: "threads return from a wait" };

/** What had to happen one after the other; the timeline shows it while the step is selected. */
export async function pathView(ctx: Context, s: Selected): Promise<HTMLElement | null> {
  const { app } = ctx;
  const thread = app.opening?.threads[0] ?? app.meta.rows.find((r) => r.is_launcher)?.key;
  const path = thread ? await app.source.ask<Path>("path", { from: s.start, to: s.end, thread, f: app.report || undefined }).catch((e: Error) => e) : null;
  if (path instanceof Error) return app.source.isOffline ? h("section", { class: "path" }, h("h4", null, "Critical path"), h("div", { class: "small" }, path.message)) : null;
  if (!path?.pieces.length || app.selection !== s) return null;
  app.path = path;
  app.changed("hover");
  const longest = [...path.pieces].sort((a, b) => b[3] - b[2] - (a[3] - a[2])).slice(0, 5);
  const rowOf = (lane: number): string => { const row = app.meta.rows[app.rowOfLane[lane]]; return row && row.parent >= 0 ? app.meta.rows[row.parent].title : row?.title ?? ""; };
  const share = (ns: number): string => format.percent(ns / Math.max(1, s.end - s.start));
  return h("section", { class: "path" }, h("h4", null, h("i", { class: "swatch", style: { background: T.path } }), "Critical path"),
    pairsOf(path.sums.sort((a, b) => b[1] - a[1]).map(([kind, ns]) => [PATH[kind] ?? kind, `${format.duration(ns)}  ${share(ns)}`])),
    h("div", { class: "small" }, "Its longest pieces:"),
    h("ul", { class: "links" }, longest.map(([kind, lane, start, end, name]) => h("li", null, h("button", {
      class: "link", onclick: () => { app.frame({ from: start, to: end }); ctx.timeline.showRow(app.rowOfLane[lane]); },
    }, name ? format.short(name) : rowOf(lane)), h("span", { class: "small" }, ` ${format.duration(end - start)}, ${name ? `${PATH[kind]}, ${rowOf(lane)}` : PATH[kind]}`)))));
}

const pairsOf = (rows: [string, string][]): HTMLElement => h("div", { class: "pairs wide" }, rows.flatMap(([k, v]) => [h("span", null, k), h("span", { class: "mono" }, v)]));

/** What `sums` answers (src/page/answer_sums.c). */
export interface Sums {
  rows: { lane: number; n: number; ns: number; n_names: number; top: [string, number, number, number][]; longest?: [number, number, number] }[];
}

/** What each row of the area did in this time. */
export async function areaView(ctx: Context, span: Span): Promise<HTMLElement | null> {
  const { app, timeline } = ctx;
  const rows = app.area.map((key) => app.meta.rows[app.rowByKey(key)]).filter((r) => r && r.n_lanes > 0);
  if (!rows.length) return null;
  const sums = await app.source.ask<Sums>("sums", { from: Math.max(0, Math.floor(span.from)), to: Math.ceil(span.to), lanes: rows.map((r) => r.lane).join(), f: app.report || undefined }).catch(() => null);
  if (!sums) return null; // before the start of the run, or after its end
  const length = Math.max(1, span.to - span.from);
  const go = (at: [number, number, number]): void => void goToEvent(app, timeline, { lane: at[0], start: at[1], end: at[2] });
  return h("section", { class: "area" }, h("h4", null, rows.length === 1 ? "This row" : `These ${rows.length} rows`),
    h("table", null, h("thead", null, h("tr", null, ["Row", "Events", "Time", "Share", "Mostly", ""].map((t, ix) => h("th", { class: ix === 0 || ix > 3 ? "text" : "num" }, t)))),
      h("tbody", null, sums.rows.map((r, ix) => h("tr", null,
        h("td", { class: "text" }, h("button", { class: "link", title: "List its events of this time", onclick: () => listEvents(ctx, rows[ix].key, undefined, true) }, rows[ix].title)),
        h("td", { class: "num" }, format.count(r.n)), h("td", { class: "num" }, r.ns ? format.duration(r.ns) : ""), h("td", { class: "num" }, r.ns ? format.percent(r.ns / length) : ""),
        h("td", { class: "text", title: r.top.length ? format.clean(r.top[0][0], 300) : undefined }, r.top.length ? format.short(r.top[0][0]) : "nothing"),
        h("td", null, r.longest ? h("button", { class: "link", onclick: () => go(r.longest!) }, "longest") : ""))))));
}
