// The pictures of the Kernel panel, as SVG: roofline, bars, traffic between the levels of memory, occupancy.

import { h, s } from "../dom";
import * as format from "../format";
import type { Launch } from "./kernel";

export interface Bar {
  label: string;
  share: number;
  title: string;
  note: string;
  /** Not a wait: drawn pale. */
  isQuiet?: boolean;
}

export function bars(rows: Bar[]): HTMLElement {
  return h("div", { class: "kernel-bars", role: "list" }, rows.map((r) => h("div", { class: "kernel-bar", role: "listitem", title: r.title },
    h("span", null, r.label),
    h("span", { class: "bar-box" }, h("i", { class: r.isQuiet ? "quiet" : "", style: { width: `${Math.min(100, 100 * r.share)}%` } })),
    h("span", { class: "num" }, `${(100 * r.share).toFixed(1)} %`),
    r.note ? h("span", { class: "small" }, r.note) : null)));
}

/** 66.9 T, 1.1 P: decimal, as data sheets have it. */
function si(v: number): string {
  const steps = ["", "k", "M", "G", "T", "P", "E"];
  let i = 0;
  while (v >= 999.5 && i + 1 < steps.length) {
    v /= 1000;
    i++;
  }
  return `${v >= 99.5 || (Number.isInteger(v) && v < 1000) ? Math.round(v) : v >= 9.95 ? v.toFixed(1) : v.toFixed(v < 0.1 ? 3 : 2)}${i ? ` ${steps[i]}` : ""}`;
}

// About as wide as a card, so that text keeps its size.
const W = 330;
const H = 220;
const LEFT = 38;
const BOTTOM = 30;
const TOP = 18;

interface Scale {
  x: (v: number) => number;
  y: (v: number) => number;
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

function dramIntensity(l: Launch): number | null {
  return l.roofline?.slopes.find((p) => p.name === "DRAM")?.intensity ?? null;
}

function scale(all: Launch[], l: Launch): Scale | null {
  const r = l.roofline!;
  const peak = Math.max(...r.ceilings.filter((c) => c.operations > 0 || c.name === "fp32").map((c) => c.peak));
  const dram = r.slopes.find((p) => p.name === "DRAM")?.peak;
  if (!(peak > 0) || !dram) return null;
  const knee = peak / dram;
  let low = knee / 30;
  let high = knee * 30;
  let bottom = peak / 300;
  for (const other of all) {
    const at = dramIntensity(other);
    if (at === null || !(other.roofline!.rate > 0)) continue;
    low = Math.min(low, Math.max(at / 2, knee / 3e3));
    high = Math.max(high, Math.min(at * 2, knee * 3e3));
    bottom = Math.min(bottom, Math.max(other.roofline!.rate / 2, peak / 1e5));
  }
  for (const p of r.slopes) if (p.intensity) low = Math.min(low, Math.max(p.intensity / 2, knee / 3e3));
  const [x0, x1, y0, y1] = [Math.log10(low), Math.log10(high), Math.log10(bottom), Math.log10(peak * 2)];
  return {
    x0, x1, y0, y1,
    x: (v) => LEFT + Math.max(0, Math.min(1, (Math.log10(v) - x0) / (x1 - x0))) * (W - LEFT - 8),
    y: (v) => H - BOTTOM - Math.max(0, Math.min(1, (Math.log10(v) - y0) / (y1 - y0))) * (H - BOTTOM - TOP),
  };
}

function axes(k: Scale): SVGElement[] {
  const out: SVGElement[] = [];
  for (let d = Math.ceil(k.x0); d <= k.x1; d++) {
    const x = k.x(10 ** d);
    out.push(s("line", { x1: x, x2: x, y1: TOP, y2: H - BOTTOM, class: "grid" }), s("text", { x, y: H - BOTTOM + 13, class: "tick middle" }, si(10 ** d)));
  }
  for (let d = Math.ceil(k.y0); d <= k.y1; d++) {
    const y = k.y(10 ** d);
    out.push(s("line", { x1: LEFT, x2: W - 8, y1: y, y2: y, class: "grid" }), s("text", { x: LEFT - 5, y: y + 4, class: "tick end" }, si(10 ** d)));
  }
  out.push(s("text", { x: (LEFT + W) / 2, y: H - 3, class: "tick middle" }, "FLOP for each byte"));
  out.push(s("text", { x: 4, y: 9, class: "tick" }, "FLOP/s"));
  return out;
}

function roofs(k: Scale, l: Launch): SVGElement[] {
  const r = l.roofline!;
  const out: SVGElement[] = [];
  const shown = r.ceilings.filter((c) => c.operations > 0 || c.name === "fp32");
  const top = Math.max(...shown.map((c) => c.peak));
  for (const c of shown) {
    const from = Math.max(10 ** k.x0, c.peak / Math.max(...r.slopes.map((p) => p.peak)));
    out.push(s("line", { x1: k.x(from), x2: W - 8, y1: k.y(c.peak), y2: k.y(c.peak), class: "roof" }, s("title", null, `${c.name}: ${si(c.peak)}FLOP/s`)),
      // Above its left end, where no launch can be: those on tensor cores are above its right end.
      s("text", { x: k.x(from), y: k.y(c.peak) - 4, class: "tick" }, `${c.name} ${si(c.peak)}`));
  }
  r.slopes.forEach((p, ix) => {
    const from = Math.max(10 ** k.x0, 10 ** k.y0 / p.peak);
    const to = top / p.peak;
    if (to <= from) return;
    out.push(s("line", { x1: k.x(from), x2: k.x(to), y1: k.y(from * p.peak), y2: k.y(to * p.peak), class: `slope slope-${ix}` }, s("title", null, `${p.name}: ${si(p.peak)}B/s`)));
  });
  return out;
}

function dot(k: Scale, l: Launch, isOn: boolean, pick: (l: Launch) => void): SVGElement | null {
  const at = dramIntensity(l);
  const rate = l.roofline?.rate ?? 0;
  if (at === null || !(rate > 0)) return null;
  const choose = (): void => pick(l);
  return s("circle", {
    cx: k.x(at), cy: k.y(rate), r: isOn ? 6 : 4.5, class: isOn ? "dot on" : "dot", tabindex: 0, role: "button", "aria-label": format.short(l.kernel), onclick: choose,
    onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter") choose(); },
  }, s("title", null, `${format.short(l.kernel)}: ${si(rate)}FLOP/s, ${si(at)} FLOP for each byte of DRAM`));
}

/** All launches under the roofs of the chosen one; null if it has no place there. */
export function rooflineChart(all: Launch[], l: Launch, pick: (l: Launch) => void): HTMLElement | null {
  if (!l.roofline || !l.roofline.ceilings.length) return null;
  const k = scale(all, l);
  if (!k) return null;
  const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart roofline", role: "img", "aria-label": "Roofline" }, axes(k), roofs(k, l));
  for (const other of all) if (other !== l) { const d = dot(k, other, false, pick); if (d) svg.append(d); }
  const rate = l.roofline.rate;
  l.roofline.slopes.forEach((p, ix) => {
    if (p.name !== "DRAM" && p.intensity && rate > 0) {
      svg.append(s("circle", { cx: k.x(p.intensity), cy: k.y(rate), r: 4, class: `level slope-${ix}` }, s("title", null, `at ${p.name}: ${si(p.intensity)} FLOP for each byte`)));
    }
  });
  const own = dot(k, l, true, pick);
  if (own) svg.append(own);
  const bound = l.roofline.slopes.filter((p) => p.roof).sort((a, b) => a.roof! - b.roof!)[0];
  const text = !l.roofline.type ? "It does no floating-point arithmetic, so the roofline does not apply."
    : bound ? `${si(rate)}FLOP/s of ${l.roofline.type}: ${(100 * rate / bound.roof!).toFixed(0)} % of its roof. Slopes: DRAM, L2, L1; filled dots are at DRAM.` : `${si(rate)}FLOP/s`;
  const box = h("div", null, h("div", { class: "small" }, text));
  box.prepend(svg);
  return box;
}

interface Box { x: number; label: string; note: string }

/** Multiprocessors, L1, L2, DRAM, with what moved between them on the edges. */
export function memoryChart(l: Launch): HTMLElement | null {
  const m = l.metrics;
  if (m.dram_bytes === undefined && m.l2_bytes === undefined) return null;
  const percent = (v: number | undefined): string => (v === undefined ? "" : `${v.toFixed(0)} % hit`);
  const busy = (v: number | undefined): string => (v === undefined ? "" : `${(100 * v).toFixed(0)} % busy`);
  const boxes: Box[] = [
    { x: 0, label: "SMs", note: busy(l.loads.sm) },
    { x: 88, label: "L1", note: percent(m.l1_hit) },
    { x: 176, label: "L2", note: percent(m.l2_hit) },
    { x: 264, label: "DRAM", note: busy(l.loads.dram) },
  ];
  const edges: [number, string][] = [
    [62, m.l1_all_bytes === undefined ? "" : format.bytes(m.l1_all_bytes)],
    [150, m.l2_bytes === undefined ? "" : format.bytes(m.l2_bytes)],
    [238, m.dram_bytes === undefined ? "" : format.bytes(m.dram_bytes)],
  ];
  const loads = [l.loads.l1 ?? 0, l.loads.l2 ?? 0, l.loads.dram ?? 0];
  const svg = s("svg", { viewBox: "-1 0 330 80", class: "chart memory-chart", role: "img", "aria-label": "Traffic between the levels of memory" },
    boxes.map((b) => s("g", null, s("rect", { x: b.x, y: 26, width: 62, height: 46, rx: 5, class: "box" }),
      s("text", { x: b.x + 31, y: 46, class: "label middle" }, b.label), s("text", { x: b.x + 31, y: 62, class: "tick middle" }, b.note))),
    edges.map(([x, text], ix) => s("g", null,
      s("line", { x1: x, x2: x + 26, y1: 49, y2: 49, class: "edge", "stroke-width": 1.5 + 8 * Math.min(1, loads[ix]) }),
      s("text", { x: x + 13, y: 18, class: "tick middle" }, text))));
  const notes = [
    m.ld_sectors_per_request > 0 ? `${m.ld_sectors_per_request.toFixed(1)} sectors per load` : "",
    m.st_sectors_per_request > 0 ? `${m.st_sectors_per_request.toFixed(1)} a store` : "",
    m.packing !== undefined ? `${m.packing.toFixed(0)} % of the bytes used` : "",
    m.conflict_share > 1 ? `${m.conflict_share.toFixed(0)} % bank conflicts` : "",
    m.local_share > 1 ? `${m.local_share.toFixed(0)} % local memory` : "",
  ].filter(Boolean).join(" · ");
  const box = h("div");
  box.append(svg, h("div", { class: "small" }, notes)); // may need two lines, and SVG does not wrap text
  return box;
}

function curve(points: [number, number][], now: number, title: string, unit: (v: number) => string): SVGElement {
  const last = points[points.length - 1][0];
  const x = (v: number): number => 4 + (v / last) * 92;
  const y = (v: number): number => 66 - v * 52;
  const at = points.reduce((a, b) => (Math.abs(b[0] - now) < Math.abs(a[0] - now) ? b : a));
  return s("svg", { viewBox: "0 0 100 88", class: "chart curve", role: "img", "aria-label": `Occupancy by ${title}` },
    s("line", { x1: 4, x2: 96, y1: y(0), y2: y(0), class: "grid" }), s("line", { x1: 4, x2: 96, y1: y(1), y2: y(1), class: "grid" }),
    s("path", { d: points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join(""), class: "line" }),
    s("circle", { cx: x(Math.min(now, last)), cy: y(at[1]), r: 4, class: "dot on" }, s("title", null, `${unit(now)}: ${(100 * at[1]).toFixed(0)} %`)),
    s("text", { x: 50, y: 82, class: "tick middle" }, `${title}: ${unit(now)}`));
}

/** What fits and what was there, and how that would change with the shape of the launch. */
export function occupancyChart(l: Launch): HTMLElement | null {
  const fits = l.metrics.occupancy_limit;
  const had = l.metrics.occupancy;
  if (fits === undefined) return null;
  const rows: Bar[] = [{ label: "fits", share: fits / 100, title: "warps that fit on a multiprocessor", note: "" }];
  if (had !== undefined) rows.push({ label: "achieved", share: had / 100, title: "warps on a multiprocessor, mean", note: "" });
  const threads = l.block.reduce((a, b) => a * b, 1);
  const charts = l.curves ? [
    curve(l.curves.threads, threads, "threads", String), curve(l.curves.registers, l.registers, "registers", String),
    curve(l.curves.shared_bytes, l.shared_bytes, "shared", (v) => format.bytes(v)),
  ] : [];
  const row = h("div", { class: "curves" });
  row.append(...charts);
  return h("div", null, bars(rows), h("div", { class: "small" }, l.limited_by ? `limited by ${l.limited_by}` : ""), row);
}
