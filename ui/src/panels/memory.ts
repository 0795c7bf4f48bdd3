// Memory: what a framework had in use and what had allocated it, tables of that, and curves of devices and processes.

import { h, s } from "../dom";
import * as format from "../format";
import { emptyState, tableView } from "../table";
import { T } from "../theme";
import { decodeCurve } from "../timeline";
import { type Context, type Panel, failure } from "./panel";
import { report, tablesOf } from "./tables";

interface Pool {
  name: string;
  pid: number;
  peak: number;
  peak_at: number;
  peak_reserved: number;
  max_reserved: number;
  end: number;
  n_allocations: number;
  places: { name: string; line: string; bytes: number }[];
  /** at, in use, reserved, then the bytes of each place */
  points: number[][];
}

const WIDTH = 1000;
const HEIGHT = 150;

function goTo(ctx: Context, at: number): void {
  const { app } = ctx;
  const length = app.view.to - app.view.from;
  app.show({ from: at - length / 2, to: at + length / 2 });
}

/** The point at or before this share of the width. */
function pointAt(pool: Pool, share: number): number[] {
  const from = pool.points[0][0];
  const at = from + share * (pool.points[pool.points.length - 1][0] - from);
  let best = pool.points[0];
  for (const p of pool.points) if (p[0] <= at) best = p;
  return best;
}

/** Steps: a value holds until the next one. */
function steps(points: number[][], x: (p: number[]) => number, y: (p: number[]) => number): string {
  let d = "";
  points.forEach((p, i) => {
    d += i ? `H${x(p).toFixed(1)}V${y(p).toFixed(1)}` : `M${x(p).toFixed(1)} ${y(p).toFixed(1)}`;
  });
  return `${d}H${WIDTH}`;
}

/** Stacked areas, the largest place at the bottom; the rest is older, or of other places. */
function areas(pool: Pool, x: (p: number[]) => number, scale: number): SVGElement[] {
  const out: SVGElement[] = [];
  const n = pool.places.length;
  const below = (p: number[], k: number): number => {
    let sum = 0;
    for (let i = 0; i < k; i++) sum += p[3 + i];
    return sum;
  };
  // Draw the total first, then each smaller sum over it, so that there are no holes.
  out.push(s("path", { d: `${steps(pool.points, x, (p) => HEIGHT - p[1] * scale)}V${HEIGHT}H0Z`, fill: T.busy }));
  for (let k = n; k > 0; k--) {
    out.push(s("path", { d: `${steps(pool.points, x, (p) => HEIGHT - Math.min(p[1], below(p, k)) * scale)}V${HEIGHT}H0Z`, fill: T.work[k - 1] }));
  }
  return out;
}

function chart(ctx: Context, pool: Pool, readout: HTMLElement): HTMLElement {
  const from = pool.points[0][0];
  const length = Math.max(1, pool.points[pool.points.length - 1][0] - from);
  const top = Math.max(pool.peak, pool.max_reserved, 1);
  const x = (p: number[]): number => ((p[0] - from) / length) * WIDTH;
  const scale = (HEIGHT - 4) / top;
  const peakX = ((pool.peak_at - from) / length) * WIDTH;
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "memory-chart", role: "img",
    "aria-label": `memory in use over time, peak ${format.bytes(pool.peak)}` },
  areas(pool, x, scale),
  pool.max_reserved > 0 ? s("path", { d: steps(pool.points, x, (p) => HEIGHT - p[2] * scale), fill: "none", stroke: T.text3,
    "stroke-width": 1.5, "stroke-dasharray": "5 3", "vector-effect": "non-scaling-stroke" }) : null,
  s("path", { d: `M${peakX} 0V${HEIGHT}`, stroke: T.accent, "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }));
  const share = (e: MouseEvent): number => {
    const box = svg.getBoundingClientRect();
    return Math.max(0, Math.min(1, (e.clientX - box.left) / Math.max(1, box.width)));
  };
  const tell = (p: number[]): void => {
    readout.textContent = `${format.moment(p[0] - ctx.app.meta.from, length / WIDTH)} · in use ${format.bytes(p[1])}`
      + (p[2] ? ` · reserved ${format.bytes(p[2])}, ${format.percent(Math.max(0, 1 - p[1] / p[2]))} unused` : "");
  };
  svg.addEventListener("mousemove", (e) => tell(pointAt(pool, share(e as MouseEvent))));
  svg.addEventListener("click", (e) => goTo(ctx, pointAt(pool, share(e as MouseEvent))[0]));
  tell(pool.points.reduce((best, p) => (p[1] > best[1] ? p : best), pool.points[0]));
  return h("div", { class: "memory-box" },
    h("div", { class: "memory-axis" }, h("span", null, format.bytes(top)), h("span", null, "0")),
    svg as unknown as HTMLElement);
}

function legend(pool: Pool): HTMLElement {
  const seen = pool.places.reduce((sum, p) => sum + p.bytes, 0);
  const items = pool.places.map((p, i) => ({ color: T.work[i], name: p.name || "no operator", title: p.line, bytes: p.bytes }));
  if (pool.peak > seen) items.push({ color: T.busy, name: "other, or before the recording", title: "", bytes: pool.peak - seen });
  return h("ul", { class: "memory-legend" }, items.map((i) => h("li", { title: i.title },
    h("i", { class: "swatch", style: { background: i.color } }), h("span", { class: "memory-name" }, format.clean(i.name, 80)),
    h("span", { class: "memory-line" }, format.clean(i.title, 60)), h("span", { class: "memory-bytes" }, format.bytes(i.bytes)))));
}

function poolView(ctx: Context, pool: Pool): HTMLElement {
  const readout = h("span", { class: "memory-readout" });
  const unused = pool.peak_reserved > pool.peak ? `, ${format.percent(1 - pool.peak / pool.peak_reserved)} of the reserved memory unused` : "";
  const view = chart(ctx, pool, readout);
  return h("section", { class: "memory-pool" },
    h("div", { class: "memory-head" },
      h("b", null, format.clean(pool.name, 80)),
      h("span", null, `peak ${format.bytes(pool.peak)}${unused} · ${format.count(pool.n_allocations)} allocations · ${format.bytes(pool.end)} at the end`),
      h("button", { onclick: () => goTo(ctx, pool.peak_at) }, "Go to the peak"), readout),
    h("div", { class: "memory-body" }, view, legend(pool)));
}

/** The reports about the allocator, one at a time. */
function tables(ctx: Context): HTMLElement {
  const choices = tablesOf(ctx, "memory");
  const body = h("div");
  const draw = async (ix: number): Promise<void> => {
    body.replaceChildren(h("div", { class: "loading" }, "…"));
    try {
      const table = await report(ctx, choices[ix].name, false);
      body.replaceChildren(tableView(table, { bar: "Held", hidden: ["Peak", "Peak At", "Reserved", "Unused"].filter(() => ix === 0) }));
      if (!table.rows.length) body.replaceChildren(emptyState("Nothing of this kind", table.why || table.summary));
    } catch (e) {
      body.replaceChildren(failure(e));
    }
  };
  const bar = h("div", { class: "panel-bar" }, h("div", { class: "choices" }, choices.map((t, ix) => h("button", {
    class: ix ? "" : "on",
    onclick: (e: Event) => {
      for (const b of (e.target as HTMLElement).parentElement!.children) b.classList.toggle("on", b === e.target);
      void draw(ix);
    },
  }, t.label))));
  void draw(0);
  return h("div", { class: "memory-tables" }, bar, body);
}

async function card(ctx: Context, ix: number): Promise<HTMLElement> {
  const { app } = ctx;
  const row = app.meta.rows[ix];
  const curve = decodeCurve(await app.source.bytes("curve", { c: row.curve, f: app.report || undefined }));
  let peak = 0;
  let at = 0;
  for (let i = 0; i < curve.max.length; i++) {
    if (curve.max[i] > peak) {
      peak = curve.max[i];
      at = curve.at[i];
    }
  }
  const owner = app.meta.rows[row.parent]?.title ?? "";
  return h("div", { class: "card" },
    h("b", null, `${owner} · ${row.title}`),
    h("div", { class: "pairs" },
      h("span", null, "peak"), h("span", null, format.value(peak, row.unit ?? "")),
      h("span", null, "at"), h("span", null, format.moment(at - app.meta.from, 1e5)),
      h("span", null, "at the end"), h("span", null, format.value(curve.last[curve.last.length - 1] ?? 0, row.unit ?? "")),
      h("span", null, "points"), h("span", null, format.count(curve.at.length))),
    h("button", {
      onclick: () => {
        app.openTo(ix);
        goTo(ctx, at);
        ctx.timeline.showRow(ix);
      },
    }, "Go to the peak"));
}

export const memory: Panel = {
  id: "memory",
  place: 100,
  title: "Memory",
  render: async (ctx) => {
    const { app } = ctx;
    const rows = app.meta.rows.map((r, ix) => ({ r, ix })).filter(({ r }) => r.curve >= 0 && r.unit === "B");
    // An old file has no such answer; its curves are shown all the same.
    const { pools } = await app.source.ask<{ pools: Pool[] }>("memory", { f: app.report || undefined }).catch(() => ({ pools: [] as Pool[] }));
    const shown = pools.filter((p) => p.points.length);
    if (!rows.length && !shown.length) {
      return emptyState("No memory was recorded",
        "Memory of devices comes with CUDA tracing, memory of processes with every recording made by lull profile.");
    }
    const cards = await Promise.all(rows.slice(0, 40).map(({ ix }) => card(ctx, ix)));
    return h("div", { class: "memory" },
      shown.map((p) => poolView(ctx, p)), shown.length ? tables(ctx) : null, cards.length ? h("div", { class: "cards" }, cards) : null);
  },
};
