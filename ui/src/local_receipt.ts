// Where the time of a span went, summed from the lanes of the one-file page. The server sums the same
// (src/page/receipt.c); what is in no lane, stacks and who waited for whom, is not told here.

import type { Item, Items, Receipt, ThreadReceipt } from "./receipt";
import type { Meta } from "./types";

/** What a lane of the file has. */
export interface Lane {
  n: number;
  start: Float64Array;
  end: Float64Array;
  name: Uint32Array;
  cls: Uint8Array;
  count: Uint32Array | null;
  busy: Uint8Array | null;
}

export interface Lanes {
  meta: Meta;
  lane: (ix: number) => Lane;
  name: (id: number) => string;
}

const TOP = 8;
const TOP_CALLS = 4;

function inside(start: number, end: number, from: number, to: number): number {
  return Math.max(0, Math.min(end, to) - Math.max(start, from));
}

/** Sum what lanes have between two moments, by name; of what reaches over an edge, the part inside. */
export function sum(all: Lanes, lanes: number[], from: number, to: number): { items: Item[]; ns: number; n: number; isFolded: boolean } {
  const by = new Map<number, Item>();
  let [ns, n, isFolded] = [0, 0, false];
  for (const ix of lanes) {
    const lane = all.lane(ix);
    for (let i = 0; i < lane.n && lane.start[i] < to; i++) {
      const length = lane.end[i] - lane.start[i];
      const part = inside(lane.start[i], lane.end[i], from, to);
      if (!part && (length > 0 || lane.start[i] < from)) continue;
      const time = lane.busy ? (part * lane.busy[i]) / 255 : part;
      const count = lane.count ? lane.count[i] : 1;
      const item = by.get(lane.name[i]) ?? [all.name(lane.name[i]), lane.cls[i], 0, 0];
      item[2] += time;
      item[3] += count;
      by.set(lane.name[i], item);
      ns += time;
      n += count;
      isFolded ||= lane.busy !== null;
    }
  }
  return { items: [...by.values()].sort((a, b) => b[2] - a[2] || b[3] - a[3]), ns, n, isFolded };
}

export function sumUp(all: Lanes, from: number, to: number): Receipt {
  const { meta } = all;
  let isFolded = false;
  const lanesOf = (parent: number, kind: string, max = Infinity): number[] =>
    meta.rows.filter((r) => r.parent === parent && r.kind === kind).flatMap((r) => Array.from({ length: Math.min(max, r.n_lanes) }, (_, l) => r.lane + l));
  const kindOf = (parent: number, kind: string, max?: number): ReturnType<typeof sum> => {
    const s = sum(all, lanesOf(parent, kind, max), from, to);
    isFolded ||= s.isFolded;
    return s;
  };
  const items = (s: ReturnType<typeof sum>): Items => ({ n: s.n, ns: s.ns, n_names: s.items.length, top: s.items.slice(0, TOP) });
  const rounds = meta.rows.find((r) => r.key === "rounds" && r.n);
  const devices = meta.rows.map((row, ix) => ({ row, ix })).filter(({ row }) => row.kind === "device").map(({ row, ix }) => {
    const busy = row.n_lanes ? all.lane(row.lane) : null;
    const life = busy?.n ? inside(busy.start[0], busy.end[busy.n - 1], from, to) : 0;
    return {
      key: row.key, title: row.title, ns: life, busy_ns: sum(all, row.n_lanes ? [row.lane] : [], from, to).ns,
      causes: kindOf(ix, "idle", 1).items.map(([id, family, ns]): [string, number, number] => [id, family, ns]),
      kernels: items(kindOf(ix, "kernel")), copies: items(kindOf(ix, "copy")),
    };
  });
  const threads: ThreadReceipt[] = [];
  meta.rows.forEach((row, ix) => {
    if (row.kind !== "thread") return;
    const cpu = kindOf(ix, "cpu", 1);
    const ready = cpu.items.filter((c) => c[0] === "runnable, waits for a CPU").reduce((t, c) => t + c[2], 0);
    const calls = ["call", "os", "gil"].flatMap((kind) => kindOf(ix, kind, 1).items.slice(0, TOP_CALLS).map(([name, cls, ns, n]): ThreadReceipt["calls"][0] => [kind, name, cls, ns, n]));
    const python = kindOf(ix, "pysample");
    const samples = python.n ? python : kindOf(ix, "sample");
    if (!cpu.ns && !calls.length) return;
    threads.push({
      key: row.key, title: row.title, has_cpu: cpu.items.length > 0, cpu_ns: cpu.ns - ready, runnable_ns: ready, calls, ranges: items(kindOf(ix, "range")),
      n_samples: samples.n, samples: samples.items.slice(0, TOP_CALLS).map(([name, , , n]): [string, string, number] => [name, "", n]),
    });
  });
  const launches = (t: ThreadReceipt): number => t.calls.filter((c) => c[0] === "call").reduce((n, c) => n + c[4], 0);
  threads.sort((a, b) => launches(b) - launches(a) || b.cpu_ns - a.cpu_ns);
  const steps = rounds ? sum(all, [rounds.lane], from, to) : kindOf(-1, "step");
  return { from, to, steps: items(steps), devices, n_threads: threads.length, threads: threads.slice(0, 24), is_folded: isFolded };
}
