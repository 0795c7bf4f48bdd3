// Kernel: launches whose counters were read. What limits each, its place under the roof, what its warps waited for,
// what moved between the levels of memory, occupancy, the hottest lines.

import { h } from "../dom";
import * as format from "../format";
import { emptyState, tableView } from "../table";
import type { Cell, Table } from "../types";
import { bars, memoryChart, occupancyChart, rooflineChart } from "./kernel_charts";
import { type Panel, failure } from "./panel";

export interface Claim {
  id: string;
  detail: string;
  title: string;
  gain: number | null;
  proofs: string[];
  fix: string;
}

export interface Line {
  label: string;
  key: string;
  value?: number;
  unit?: string;
  note: string;
}

export interface Launch {
  id: number;
  kernel: string;
  range: string | null;
  device: string;
  start_ns: number;
  duration_ns: number;
  ordinal: number;
  passes: number;
  n_launches?: number;
  n_launches_least?: number;
  trouble: string | null;
  grid: number[];
  block: number[];
  registers: number;
  shared_bytes: number;
  limited_by?: string;
  verdict: Claim | null;
  also: Claim[];
  missing: string;
  loads: Record<string, number>;
  stalls: { reason: string; title: string; share: number; meaning: string; help: string }[];
  roofline: {
    rate: number;
    type: string | null;
    ceilings: { name: string; peak: number; operations: number }[];
    slopes: { name: string; peak: number; intensity: number | null; roof: number | null }[];
  } | null;
  curves?: Record<string, [number, number][]>;
  sections: { name: string; title: string; lines: Line[] }[];
  samples: number;
  source: { file: string | null; line: number; function: string; offset: number; samples: number; stall: string | null }[];
  metrics: Record<string, number>;
}

interface Answer {
  n: number;
  launches: Launch[];
  command?: string; // what reads counters, if there are none
}

function gainText(claim: Claim): string {
  return claim.gain === null ? "" : `up to ${claim.gain >= 10 ? Math.round(claim.gain) : claim.gain.toFixed(2)} × faster`;
}

function card(title: string, ...children: (Node | string | null)[]): HTMLElement {
  return h("section", { class: "card kernel-card" }, h("b", null, title), ...children);
}

function verdictCard(l: Launch): HTMLElement {
  const claim = l.verdict;
  if (!claim) {
    return card("Verdict", h("div", { class: "kernel-verdict" }, "unknown"),
      h("div", null, l.trouble ?? "The counters that were read do not show what limits it."),
      l.missing && !l.trouble ? h("div", { class: "small" }, `missing: ${l.missing}`) : null);
  }
  return card("Verdict",
    h("div", { class: "kernel-verdict" }, claim.id, claim.detail ? h("span", { class: "small" }, ` ${claim.detail}`) : null),
    h("div", null, claim.title),
    h("ul", null, claim.proofs.map((p) => h("li", null, p))),
    h("div", null, h("b", null, "Try "), claim.fix),
    claim.gain === null ? null : h("div", { class: "small" }, gainText(claim), ", if nothing else limits it"),
    l.also.length ? h("div", { class: "small" }, "also: ", l.also.map((c) => `${c.id} (${gainText(c)})`).join(", ")) : null);
}

function sourceCard(l: Launch): HTMLElement | null {
  if (!l.source.length) return null;
  const rows = l.source.slice(0, 12).map((s) => ({
    label: s.file ? `${s.file.split("/").pop()}:${s.line}` : `+0x${s.offset.toString(16)}`,
    share: s.samples / l.samples,
    title: `${s.file ?? s.function}${s.stall ? `, waits mostly: ${s.stall}` : ""}`,
    note: s.stall ?? "",
  }));
  return card("Source", bars(rows), h("div", { class: "small" }, `${format.count(l.samples)} samples`));
}

// A range that was measured as one piece of work.
function rangeCard(l: Launch, n: number): HTMLElement {
  const least = l.n_launches_least ?? n;
  const pairs: [string, string][] = [
    ["duration", format.duration(l.duration_ns)],
    ["launches", least === n ? format.count(n) : `${format.count(n)} in one run and ${format.count(least)} in another: its numbers belong to different work`],
    ["device", l.device || "not known"],
    ["passes", l.passes ? `${l.passes}, one run of the program each` : "none"],
  ];
  return card("Range", h("div", { class: "pairs" }, pairs.flatMap(([k, v]) => [h("span", null, k), h("span", null, v)])));
}

function shapeCard(l: Launch): HTMLElement {
  const m = l.metrics;
  if (l.n_launches !== undefined) return rangeCard(l, l.n_launches);
  const pairs: [string, string][] = [
    ["duration", format.duration(l.duration_ns)],
    ["grid", l.grid.join(" × ")],
    ["block", l.block.join(" × ")],
    ["waves", m.waves === undefined ? "not known" : m.waves.toFixed(2)],
    ["registers", String(l.registers)],
    ["shared memory", format.bytes(l.shared_bytes)],
    ["device", l.device || "not known"],
    ["passes", l.passes ? String(l.passes) : "none"],
  ];
  if (l.range) pairs.push(["range", l.range]);
  return card("Launch", h("div", { class: "pairs" }, pairs.flatMap(([k, v]) => [h("span", null, k), h("span", null, v)])));
}

function speedCard(l: Launch): HTMLElement | null {
  const lines = l.sections.find((s) => s.name === "speed")?.lines.filter((x) => x.unit === "%") ?? [];
  if (!lines.length) return null;
  return card("Speed of Light", bars(lines.slice(0, 10).map((x) => ({ label: x.label, share: (x.value ?? 0) / 100, title: x.note, note: "" }))));
}

function stallCard(l: Launch): HTMLElement | null {
  const shown = l.stalls.filter((s) => s.share >= 0.005).slice(0, 10);
  if (!shown.length) return null;
  return card("What warps did", bars(shown.map((s) => ({
    label: s.title, share: s.share, title: `${s.meaning}${s.help ? `. Helps: ${s.help}` : ""}`, note: "", isQuiet: s.reason === "selected" || s.reason === "not_selected",
  }))));
}

function details(all: Launch[], l: Launch, pick: (l: Launch) => void): HTMLElement {
  const roofline = rooflineChart(all, l, pick);
  const memory = memoryChart(l);
  const occupancy = occupancyChart(l);
  return h("div", { class: "cards kernel-cards" },
    verdictCard(l), speedCard(l),
    roofline ? card("Roofline", roofline) : null,
    stallCard(l),
    memory ? card("Memory", memory) : null,
    occupancy ? card("Occupancy", occupancy) : null,
    sourceCard(l), shapeCard(l));
}

function list(all: Launch[], n: number, pick: (ix: number) => void): HTMLElement {
  const number = (v: number | undefined): Cell => (v === undefined ? null : v);
  const table: Table = {
    name: "profiled", title: "Profiled kernels", summary: "", n, columns: [
      { name: "#", kind: "int" }, { name: "Time", kind: "ns" }, { name: "SM", kind: "pct" }, { name: "Memory", kind: "pct" },
      { name: "Verdict", kind: "text" }, { name: "Kernel", kind: "text" },
    ] as Table["columns"],
    rows: all.map((l) => [l.id, l.duration_ns, number(l.metrics.sm_busy), number(l.metrics.memory_throughput),
      l.verdict?.id ?? "unknown", format.short(l.kernel)]),
  };
  return tableView(table, { rowTitle: "Show this launch", onRow: (row) => pick(all.findIndex((l) => l.id === row[0])) });
}

export const kernel: Panel = {
  id: "kernel",
  place: 130,
  title: "Kernel",
  render: async ({ app }) => {
    try {
      const answer = await app.source.ask<Answer>("profiled", { f: app.report || undefined });
      const all = answer.launches;
      if (!all.length) {
        return emptyState("No counters were recorded", "This command reads them for the kernels that take most time: roofline, stalls, occupancy, and what limits each.",
          answer.command ?? "lull kernel --help");
      }
      const body = h("div", { class: "kernel-details" });
      const title = h("span", { class: "kernel-name" });
      const show = (l: Launch): void => {
        title.textContent = format.clean(l.kernel, 300);
        title.title = format.clean(l.kernel, 2000);
        body.replaceChildren(details(all, l, show));
        body.scrollTop = 0;
      };
      const longest = all.reduce((a, b) => (b.duration_ns > a.duration_ns ? b : a));
      show(longest);
      return h("div", { class: "panel kernel" }, h("div", { class: "panel-bar" }, title),
        h("div", { class: "kernel-split" }, all.length > 1 ? h("div", { class: "kernel-list" }, list(all, answer.n, (ix) => show(all[ix]))) : null, body));
    } catch (e) {
      return failure(e);
    }
  },
};
