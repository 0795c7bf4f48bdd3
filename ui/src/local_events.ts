// Lists of events and sums of rows from the lanes of the one-file page; the server makes the same (src/page/answer_events.c,
// answer_sums.c).

import type { Sums } from "./depth";
import type { Events } from "./lengths";
import { type Lanes, sum } from "./local_receipt";
import type { Args } from "./source";
import type { Row } from "./types";

const PARTS = 64;
const MAX_BINS = 24;
const NESTED = ["range", "op", "pycall"];

/** Lengths in parts of a factor of two. */
function partOf(ns: number): number {
  const log2 = ns >= 1 ? Math.floor(Math.log2(ns)) : 0;
  return log2 * PARTS + (ns >= 1 ? Math.floor((ns / 2 ** log2 - 1) * PARTS) : 0);
}

function partNs(part: number): number {
  return part === 0 ? 0 : Math.ceil((1 + (part % PARTS) / PARTS) * 2 ** Math.floor(part / PARTS));
}

function binsOf(lengths: number[]): Events["bins"] {
  const counts = new Map<number, number>();
  for (const ns of lengths) counts.set(partOf(ns), (counts.get(partOf(ns)) ?? 0) + 1);
  if (!counts.size) return [];
  const first = Math.min(...counts.keys());
  const last = Math.max(...counts.keys()) + 1;
  let width = 1;
  while (Math.ceil((last - first) / width) > MAX_BINS) width *= 2;
  const bins: Events["bins"] = [];
  for (let i = first; i < last; i += width) {
    let n = 0;
    for (let k = i; k < i + width; k++) n += counts.get(k) ?? 0;
    bins.push([partNs(i), partNs(i + width), n]);
  }
  return bins;
}

const lanesOf = (row: Row): number[] => Array.from({ length: row.n_lanes }, (_, l) => row.lane + l);
const rowOf = (all: Lanes, lane: number): Row | undefined => all.meta.rows.find((r) => lane >= r.lane && lane < r.lane + r.n_lanes);

export function eventsOf(all: Lanes, args: Args): Events {
  const row = rowOf(all, Number(args.lane));
  const rows = args.everywhere ? all.meta.rows.filter((r) => r.kind === row?.kind && !r.is_hidden) : row ? [row] : [];
  const [from, to] = [args.from === undefined ? -Infinity : Number(args.from), args.to === undefined ? Infinity : Number(args.to)];
  const found: Events["rows"] = [];
  let isCut = false;
  for (const ix of rows.flatMap(lanesOf)) {
    const lane = all.lane(ix);
    for (let i = 0; i < lane.n; i++) {
      if (lane.start[i] >= to || (lane.end[i] <= from && lane.start[i] < from)) continue;
      if (args.name !== undefined && lane.name[i] !== Number(args.name)) continue;
      if (lane.count && lane.count[i] > 1) isCut = true;
      else found.push([ix, lane.start[i], lane.end[i], lane.name[i], lane.cls[i]]);
    }
  }
  const sign = args.down ? -1 : 1;
  const length = (e: Events["rows"][0]): number => e[2] - e[1];
  const order = { start: (a, b) => a[1] - b[1], length: (a, b) => length(a) - length(b), name: (a, b) => (all.name(a[3]) < all.name(b[3]) ? -1 : Number(a[3] !== b[3])) } as Record<string, (a: Events["rows"][0], b: Events["rows"][0]) => number>;
  const by = order[String(args.by ?? "start")] ?? order.start;
  found.sort((a, b) => sign * by(a, b) || a[1] - b[1]);
  const first = Number(args.first ?? 0);
  return { n: found.length, ns: found.reduce((n, e) => n + length(e), 0), is_cut: isCut, rows: found.slice(first, first + Number(args.n ?? 200)), bins: binsOf(found.map(length)) };
}

export function sumsOf(all: Lanes, args: Args): Sums {
  const [from, to] = [Number(args.from), Number(args.to)];
  return {
    rows: String(args.lanes).split(",").map((text) => {
      const row = rowOf(all, Number(text));
      const s = sum(all, row ? lanesOf(row) : [], from, to);
      const outer = row && NESTED.includes(row.kind) ? sum(all, [row.lane], from, to).ns : s.ns;
      return { lane: Number(text), n: s.n, ns: outer, n_names: s.items.length, top: s.items.slice(0, 3), longest: row ? longestOf(all, row, from, to) : undefined };
    }),
  };
}

function longestOf(all: Lanes, row: Row, from: number, to: number): [number, number, number] | undefined {
  let best: [number, number, number] | undefined;
  let most = 0;
  for (const ix of lanesOf(row)) {
    const lane = all.lane(ix);
    for (let i = 0; i < lane.n && lane.start[i] < to; i++) {
      const part = Math.min(lane.end[i], to) - Math.max(lane.start[i], from);
      if (part > most && !(lane.count && lane.count[i] > 1)) [most, best] = [part, [ix, lane.start[i], lane.end[i]]];
    }
  }
  return best;
}
