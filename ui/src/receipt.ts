// Where the time of a span went: what each device did and waited for, and what the threads did meanwhile. The server
// sums it (src/page/receipt.h), for any span that somebody marks.

import type { App } from "./app";
import { h } from "./dom";
import * as format from "./format";
import { type Context } from "./panels/panel";
import { placeView } from "./panels/source";
import { showName } from "./panels/tables";
import { IDLE_FAMILIES, T } from "./theme";
import type { Link, Span } from "./types";

export type Item = [name: string, cls: number, ns: number, n: number];

export interface Items {
  n: number;
  ns: number;
  n_names: number;
  top: Item[];
}

export interface DeviceReceipt {
  key: string;
  title: string;
  ns: number; // of the span, from its first work to its last
  busy_ns: number;
  causes: [id: string, family: number, ns: number][];
  kernels: Items;
  copies: Items;
}

export interface ThreadReceipt {
  key: string;
  title: string;
  has_cpu: boolean;
  cpu_ns: number;
  runnable_ns: number;
  calls: [kind: string, name: string, cls: number, ns: number, n: number][];
  ranges: Items;
  n_samples: number;
  samples: [fn: string, place: string, n: number][];
  wait?: { lane: number; start: number; end: number; name: string; links: Link[] };
}

export interface Receipt {
  from: number;
  to: number;
  is_folded: boolean;
  steps: Items;
  devices: DeviceReceipt[];
  n_threads: number;
  threads: ThreadReceipt[];
}

export async function receiptOf(app: App, span: Span): Promise<Receipt> {
  await app.names.learn().catch(() => undefined);
  return app.source.ask<Receipt>("receipt", { from: Math.max(0, Math.floor(span.from)), to: Math.ceil(span.to), f: app.report || undefined });
}

const times = (n: number): string => (n === 1 ? "once" : `${format.count(n)} times`);

function line(share: number, colour: string, name: string | Node, value: string, title?: string, go?: () => void): HTMLElement {
  const text = go ? h("button", { class: "link", onclick: go }, name) : h("span", null, name);
  return h("div", { class: "receipt-line", title }, h("div", { class: "bar-box" }, h("i", { style: { width: `${Math.min(100, 100 * share)}%`, background: colour } })), text, h("span", { class: "num" }, value));
}

/** A device: what it waited for, of how much. */
function deviceView(d: DeviceReceipt): HTMLElement {
  const waits = d.causes.reduce((sum, c) => sum + c[2], 0);
  const computes = Math.max(0, d.ns - waits);
  const of = format.duration(d.ns);
  const share = (ns: number): number => ns / Math.max(1, d.ns);
  return h("div", { class: "receipt-part" },
    h("div", { class: "small" }, d.ns ? `${d.title.split(" ").slice(0, 2).join(" ")}, of ${of}: busy ${format.percent(share(d.busy_ns))}, copies and collectives included` : `${d.title}: before its first work, or after its last`),
    d.ns ? line(share(computes), T.busy, "computing", `${format.duration(computes)}  ${format.percent(share(computes))}`) : null,
    d.causes.filter((c) => share(c[2]) >= 0.0005).map(([id, family, ns]) => line(share(ns), T.idle[family], id === "idle" ? "idle, cause not known" : id, `${format.duration(ns)}  ${format.percent(share(ns))}`, IDLE_FAMILIES[family])));
}

function kernelsView(ctx: Context, d: DeviceReceipt): HTMLElement | null {
  const rest = d.kernels.n_names - d.kernels.top.length;
  const of = Math.max(1, d.kernels.ns);
  if (!d.kernels.n && !d.copies.n) return null;
  return h("section", null, h("h4", null, `Kernels: ${format.count(d.kernels.n)}, ${format.duration(d.kernels.ns)}`),
    d.kernels.top.map(([name, cls, ns, n]) => line(ns / of, T.work[cls], format.short(name), `${format.duration(ns)}  ${times(n)}`, `${format.clean(name, 300)}\n${format.percent(ns / of)} of the kernels' time in this span`, () => void showName(ctx, name))),
    rest > 0 ? h("div", { class: "small" }, `and ${format.count(rest)} more names`) : null,
    d.copies.n ? h("h4", null, `Copies: ${format.count(d.copies.n)}, ${format.duration(d.copies.ns)}`) : null,
    d.copies.top.map(([name, cls, ns, n]) => line(ns / Math.max(1, d.copies.ns), T.work[cls], name, `${format.duration(ns)}  ${times(n)}`)));
}

/** Whom the longest wait was for. */
function waitView(ctx: Context, wait: NonNullable<ThreadReceipt["wait"]>): HTMLElement | null {
  const { app, timeline } = ctx;
  const other = wait.links.find((l) => l.rel === "producer" || l.rel === "awaited");
  if (!other) return null;
  const row = app.meta.rows[app.rowOfLane[other.lane]];
  const owner = row && row.parent >= 0 ? app.meta.rows[row.parent].title : row?.title ?? "";
  return h("div", { class: "small" }, `${wait.name} waits for `, h("button", {
    class: "link", onclick: () => {
      app.openTo(app.rowOfLane[other.lane]);
      app.reveal({ from: other.start, to: other.end }, true);
      timeline.showRow(app.rowOfLane[other.lane]);
      void app.selectAt(other.lane, (other.start + other.end) / 2);
    },
  }, format.short(other.name)), owner ? ` (${owner})` : "");
}

function threadView(ctx: Context, t: ThreadReceipt, length: number): HTMLElement {
  const { app, timeline } = ctx;
  const share = (ns: number): number => ns / Math.max(1, length);
  const row = app.rowByKey(t.key);
  const state = t.has_cpu ? [`on a CPU ${format.percent(share(t.cpu_ns))}`, t.runnable_ns ? `ready, waits for a CPU ${format.percent(share(t.runnable_ns))}` : ""].filter(Boolean).join(", ") : "";
  const calls = [...t.calls].sort((a, b) => b[3] - a[3]).slice(0, 4);
  return h("div", { class: "receipt-thread" },
    h("div", null, h("button", { class: "link strong", title: "Show its rows", onclick: () => { app.openTo(row); app.collapsed.delete(t.key); app.changed("rows"); timeline.showRow(row); } }, app.meta.rows[row]?.title ?? t.title),
      h("span", { class: "small" }, ` ${[app.meta.rows[row]?.is_launcher ? "launches" : "", state].filter(Boolean).join(" · ")}`)),
    t.ranges.top.slice(0, 3).map(([name, , ns, n]) => line(share(ns), T.work[7], `in ${format.clean(name, 80)}`, `${format.duration(ns)}  ${times(n)}`, "a range of the program")),
    calls.map(([kind, name, , ns, n]) => line(share(ns), T.accent, kind === "gil" ? name : format.short(name), `${format.duration(ns)}  ${times(n)}`, `${format.percent(share(ns))} of this span`)),
    t.wait ? waitView(ctx, t.wait) : null,
    t.samples.map(([fn, place, n]) => h("div", { class: "receipt-sample small", title: place }, h("span", { class: "mono" }, format.clean(fn || "?", 60)), " ", placeView(ctx.app, place), h("span", { class: "num" }, `${n} of ${t.n_samples} samples`))));
}

function threadsView(ctx: Context, r: Receipt): HTMLElement {
  const length = r.to - r.from;
  const launchers = ctx.app.opening?.threads ?? [];
  const place = (t: ThreadReceipt): number => { const at = launchers.indexOf(t.key); return at < 0 ? launchers.length : at; };
  // A thread that slept all the time explains nothing.
  const active = r.threads.filter((t) => t.cpu_ns >= length * 0.01 || t.calls.some((c) => c[0] === "call") || t.n_samples > 0 || place(t) < launchers.length);
  const shown = active.map((t, ix) => ({ t, ix })).sort((a, b) => place(a.t) - place(b.t) || a.ix - b.ix).map((x) => x.t).slice(0, 8);
  const rest = r.n_threads - shown.length;
  return h("section", { class: "receipt-threads" }, h("h4", null, `Threads, of ${format.duration(length)}`),
    shown.length ? shown.map((t) => threadView(ctx, t, length)) : h("div", { class: "small" }, "No thread was seen at work in this time."),
    rest > 0 ? h("div", { class: "small" }, `${rest} other ${rest === 1 ? "thread" : "threads"} slept or waited`) : null);
}

/** The sections of a receipt; `isGap`: the span is one gap of a device, whose cause is told already. */
export async function receiptView(ctx: Context, span: Span, isGap = false): Promise<HTMLElement[]> {
  let r: Receipt;
  try {
    r = await receiptOf(ctx.app, span);
  } catch (e) {
    return [h("section", null, h("h4", null, "In this time"), h("div", { class: "small" }, (e as Error).message))];
  }
  const lead = ctx.app.opening?.device;
  const devices = [...r.devices].sort((a, b) => Number(b.key === lead) - Number(a.key === lead));
  const kernels = devices.filter((d) => d.ns > 0).slice(0, 1).map((d) => kernelsView(ctx, d));
  return [
    isGap || !devices.length ? null : h("section", null, h("h4", null, "Devices"), devices.slice(0, 8).map(deviceView),
      r.is_folded ? h("div", { class: "small" }, "Very many events: sums are exact, names of the shortest ones are not.") : null),
    threadsView(ctx, r), ...(isGap ? [] : kernels)].filter((x): x is HTMLElement => !!x);
}
