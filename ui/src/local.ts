// The page as one file: answers come out of the document itself, in the form the server would give.

import { type Args, AskError, type Source } from "./source";
import { TILE_BUCKETS } from "./tiles";
import type { Cell, Column, Hits, Link, Meta, Selected, Table } from "./types";

interface Packed {
  answers: Record<string, unknown> & { meta: Meta };
  pack: { unit: number; notice: string | null; from?: number; to?: number; lanes: [number, number, number][]; names: [number, string][]; curves: number[][] };
}

/** Events, or folds of them, of one lane; times in ns. */
const WORK = ["kernel", "copy", "memset", "graph"];
const CALLS_WAIT = 2; // enum lull_call_class
const SLACK_NS = 2000; // as in src/page/waits.c

interface Lane {
  n: number;
  start: Float64Array;
  end: Float64Array;
  name: Uint32Array; // ids
  cls: Uint8Array;
  corr: Uint32Array;
  count: Uint32Array | null;
  busy: Uint8Array | null;
}

class Reader {
  constructor(private readonly bytes: Uint8Array, private at: number) {}

  u(): number {
    let v = 0;
    let scale = 1;
    for (;;) {
      const b = this.bytes[this.at++];
      v += (b & 0x7f) * scale;
      if (b < 0x80) return v;
      scale *= 128;
    }
  }

  i(): number {
    const v = this.u();
    return v % 2 ? -(v + 1) / 2 : v / 2;
  }

  byte(): number {
    return this.bytes[this.at++];
  }
}

function decodeLane(bytes: Uint8Array, at: number, n: number, isFolded: boolean, unit: number, names: [number, string][]): Lane {
  const r = new Reader(bytes, at);
  const lane: Lane = {
    n, start: new Float64Array(n), end: new Float64Array(n), name: new Uint32Array(n), cls: new Uint8Array(n), corr: new Uint32Array(n),
    count: isFolded ? new Uint32Array(n) : null, busy: isFolded ? new Uint8Array(n) : null,
  };
  for (let i = 0; i < n; i++) lane.start[i] = r.i();
  let last = 0;
  for (let i = 0; i < n; i++) {
    lane.start[i] += last;
    last = lane.end[i] = lane.start[i] + r.u();
  }
  for (let i = 0; i < n; i++) lane.name[i] = names[r.u()]?.[0] ?? 0;
  for (let i = 0; i < n; i++) lane.cls[i] = r.byte();
  let corr = 0;
  for (let i = 0; i < n; i++) lane.corr[i] = corr += r.i();
  for (let i = 0; isFolded && i < n; i++) lane.count![i] = r.u();
  for (let i = 0; isFolded && i < n; i++) lane.busy![i] = r.byte();
  for (let i = 0; i < n; i++) {
    lane.start[i] *= unit;
    lane.end[i] *= unit;
  }
  return lane;
}

/** Index of the first that ends behind t. */
function firstAfter(lane: Lane, t: number): number {
  let low = 0;
  let high = lane.n;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (lane.end[mid] > t) high = mid;
    else low = mid + 1;
  }
  return low;
}

/** The time in which any of these lanes is busy; of what is folded, its busy share. */
function union(lanes: Lane[], is: (name: number) => boolean): { from: number; to: number; sum: number } {
  const at = lanes.map(() => 0);
  const out = { from: Infinity, to: -Infinity, sum: 0 };
  for (;;) {
    let next = -1; // the lane that begins first
    lanes.forEach((lane, k) => { if (at[k] < lane.n && (next < 0 || lane.start[at[k]] < lanes[next].start[at[next]])) next = k; });
    if (next < 0) return out;
    const [lane, i] = [lanes[next], at[next]++];
    if (!is(lane.name[i])) continue;
    const share = lane.busy ? lane.busy[i] / 255 : 1;
    out.sum += share * Math.max(0, lane.end[i] - Math.max(lane.start[i], out.to));
    out.from = Math.min(out.from, lane.start[i]);
    out.to = Math.max(out.to, lane.end[i]);
  }
}

interface Fold {
  start: number;
  end: number;
  busy: number;
  longest: number;
  name: number;
  count: number;
  cls: number;
  by: Float64Array;
}

/** Fold what touches [from, to) into buckets of `width`, as the server does. */
export function foldLane(lane: Lane, from: number, to: number, width: number): Fold[] {
  const out: Fold[] = [];
  let open: Fold | null = null;
  for (let i = firstAfter(lane, from - 1); i < lane.n && lane.start[i] < to; i++) {
    const start = lane.start[i];
    const end = lane.end[i];
    const busy = lane.busy ? ((end - start) * lane.busy[i]) / 255 : end - start;
    const count = lane.count ? lane.count[i] : 1;
    const make = (): Fold => {
      const by = new Float64Array(8);
      by[lane.cls[i]] = busy || 1;
      return { start, end, busy, longest: busy, name: lane.name[i], count, cls: lane.cls[i], by };
    };
    if (end - start >= width) {
      open = null;
      out.push(make());
    } else if (open && Math.floor(open.start / width) === Math.floor(start / width)) {
      open.end = Math.max(open.end, end);
      open.busy += busy;
      open.count += count;
      open.by[lane.cls[i]] += busy || 1;
      if (busy > open.longest) {
        open.longest = busy;
        open.name = lane.name[i];
      }
    } else {
      open = make();
      out.push(open);
    }
  }
  return out;
}

const column = (name: string, kind: string): Column => ({ name, kind, decimals: 1 });

export class LocalSource implements Source {
  readonly isOffline = true;
  private readonly lanes: (Lane | null)[];
  private readonly names: Map<number, string>;
  private readonly rowOfLane: number[] = [];

  constructor(private readonly data: Packed, private readonly packed: Uint8Array, private readonly base: number) {
    this.lanes = new Array<Lane | null>(data.pack.lanes.length).fill(null);
    this.names = new Map(data.pack.names);
    data.answers.meta.rows.forEach((row, ix) => {
      for (let l = 0; l < row.n_lanes; l++) this.rowOfLane[row.lane + l] = ix;
    });
    const { meta } = data.answers;
    if (data.pack.notice) meta.notice = data.pack.notice;
    if (data.pack.from !== undefined && data.pack.to !== undefined) {
      // A part of the run: nothing outside of it is here.
      meta.run = meta.to - meta.from;
      meta.from = Math.max(meta.from, data.pack.from);
      meta.to = Math.min(meta.to, data.pack.to);
      meta.minimap = { busy: [], idle: [], n: 0 };
      meta.notice = meta.notice ? `some steps only; ${meta.notice}` : "some steps only";
    }
  }

  private lane(ix: number): Lane {
    let lane = this.lanes[ix];
    if (!lane) {
      const [n, at, isFolded] = this.data.pack.lanes[ix];
      lane = this.lanes[ix] = decodeLane(this.packed, this.base + at, n, !!isFolded, 2 ** this.data.pack.unit, this.data.pack.names);
    }
    return lane;
  }

  async ask<T>(name: string, args: Args = {}): Promise<T> {
    return this.answer(name, args) as T;
  }

  post<T>(): Promise<T> {
    return Promise.reject(new AskError("a file cannot run SQL", 501));
  }

  private answer(name: string, args: Args): unknown {
    const n = (key: string): number => Number(args[key] ?? 0);
    switch (name) {
      case "names": return String(args.id).split(",").map((id) => this.names.get(Number(id)) ?? "?");
      case "event": return this.event(n("lane"), n("t"), n("slack"));
      case "next": return this.next(n("lane"), n("t"), n("dir"), args.name === undefined ? -1 : n("name"));
      case "gaps": return this.gaps(n("lane"), n("n") || 200, args.between !== undefined);
      case "search": return this.search(String(args.q), args.regex !== undefined, args.exact !== undefined);
      case "table": return this.table(String(args.name), args);
      case "flame": return this.known(args.kind ? `flame:${args.kind}` : "flame");
      default: return this.known(name);
    }
  }

  private known(key: string): unknown {
    const answer = this.data.answers[key];
    if (answer === undefined) throw new AskError("This file does not hold it; lull view shows it.", 404);
    return answer;
  }

  /** Tables of the whole run are in the file; those of a range are summed here. */
  private table(name: string, args: Args): unknown {
    const kinds: Record<string, string[]> = { cuda_gpu_sum: ["kernel", "copy", "memset"], cuda_gpu_kern_sum: ["kernel"], cuda_api_sum: ["call"], nvtx_sum: ["range"], osrt_sum: ["os"] };
    if (args.from === undefined && this.data.answers[`table:${name}`]) return this.known(`table:${name}`);
    if (name === "overlap") return this.overlap();
    if (!kinds[name]) throw new AskError("This file does not hold it; lull view shows it.", 404);
    const from = Number(args.from ?? 0);
    const to = Number(args.to ?? Infinity);
    const sums = new Map<number, [number, number]>();
    let all = 0;
    this.rowOfLane.forEach((row, lane) => {
      if (!kinds[name].includes(this.data.answers.meta.rows[row].kind)) return;
      const l = this.lane(lane);
      for (let i = firstAfter(l, from); i < l.n && l.start[i] < to; i++) {
        if (l.start[i] < from || l.end[i] > to) continue;
        const sum = sums.get(l.name[i]) ?? [0, 0];
        sum[0] += l.end[i] - l.start[i];
        sum[1] += l.count ? l.count[i] : 1;
        all += l.end[i] - l.start[i];
        sums.set(l.name[i], sum);
      }
    });
    const rows = [...sums].sort((a, b) => b[1][0] - a[1][0]).map(([id, [total, count]]): Cell[] =>
      [all ? (100 * total) / all : 0, total, count, total / count, this.names.get(id) ?? "?"]);
    const table: Table = {
      name, title: name, summary: "", n: rows.length, rows,
      columns: [column("Time", "pct"), column("Total Time", "ns"), column("Instances", "int"), column("Avg", "ns"), column("Name", "text")],
    };
    return table;
  }

  /** What panels need of `lull stats -r overlap`: each device's span, and when it had any work and when it computed. */
  private overlap(): Table {
    const { rows } = this.data.answers.meta;
    const isBelow = (ix: number, device: number): boolean => ix === device || (ix >= 0 && isBelow(rows[ix].parent, device));
    const lanesOf = (device: number, kinds: string[]): Lane[] => this.rowOfLane
      .flatMap((row, lane) => (kinds.includes(rows[row].kind) && isBelow(row, device) ? [this.lane(lane)] : []));
    const cells = rows.flatMap((device, ix): Cell[][] => {
      const any = union(device.kind === "device" ? lanesOf(ix, WORK) : [], () => true);
      const span = any.to - any.from;
      if (!(span > 0)) return [];
      const computing = union(lanesOf(ix, ["kernel", "graph"]), (name) => !this.names.get(name)?.startsWith("nccl"));
      return [[`(${/\d+/.exec(device.key)?.[0] ?? ""})`, span, span - any.sum, computing.sum]];
    });
    return { name: "overlap", title: "overlap", summary: "", n: cells.length, rows: cells,
      columns: [column("Device", "text"), column("Span", "ns"), column("Idle", "ns"), column("Compute Alone", "ns")] };
  }

  private event(ix: number, t: number, slack: number): Selected {
    const lane = this.lane(ix);
    const meta = this.data.answers.meta;
    const row = meta.rows[this.rowOfLane[ix]];
    let found = -1;
    for (let i = firstAfter(lane, t - 1); i < lane.n && lane.start[i] <= t + slack; i++) {
      if (lane.start[i] <= t && lane.end[i] >= t) found = i;
      else if (found < 0 && slack) found = i;
    }
    if (found < 0) {
      const i = firstAfter(lane, t);
      return {
        type: "gap", lane: ix, row: row.key, start: i > 0 ? lane.end[i - 1] : meta.from, end: i < lane.n ? lane.start[i] : meta.to,
        before: i > 0 ? this.names.get(lane.name[i - 1]) : undefined, after: i < lane.n ? this.names.get(lane.name[i]) : undefined,
      };
    }
    return {
      type: "event", lane: ix, row: row.key, start: lane.start[found], end: lane.end[found], name: this.names.get(lane.name[found]) ?? "?",
      nameId: lane.name[found], class: lane.cls[found], fields: lane.corr[found] ? [["correlation", lane.corr[found], ""]] : [],
      links: [...this.waits(row.kind, lane, found), ...this.links(row.kind, lane.corr[found])],
    };
  }

  /** What ends last in (after, until] on the rows of these kinds. */
  private lastEnded(kinds: string[], after: number, until: number): Link | null {
    let best: Link | null = null;
    this.rowOfLane.forEach((row, ix) => {
      const kind = this.data.answers.meta.rows[row].kind;
      if (!kinds.includes(kind)) return;
      const lane = this.lane(ix);
      for (let i = firstAfter(lane, after); i < lane.n && lane.start[i] <= until; i++) {
        if (lane.end[i] <= after || lane.end[i] > until || lane.start[i] + SLACK_NS >= until || (best && lane.end[i] <= best.end)) continue;
        best = { lane: ix, start: lane.start[i], end: lane.end[i], name: this.names.get(lane.name[i]) ?? "?", kind, rel: "awaited" };
      }
    });
    return best;
  }

  /** What a call waited for, and what ended an idle time; who worked meanwhile is known to the server only. */
  private waits(kind: string, lane: Lane, i: number): Link[] {
    if (kind === "call" && lane.cls[i] === CALLS_WAIT) {
      const found = this.lastEnded(WORK, lane.start[i], lane.end[i] + SLACK_NS);
      return found ? [found] : [];
    }
    return [];
  }

  private links(kind: string, corr: number): Link[] {
    const wanted = kind === "call" ? WORK : WORK.includes(kind) ? ["call"] : [];
    const out: Link[] = [];
    if (!corr) return out;
    this.rowOfLane.forEach((row, ix) => {
      const other = this.data.answers.meta.rows[row];
      if (!wanted.includes(other.kind)) return;
      const lane = this.lane(ix);
      for (let i = 0; i < lane.n && out.length < 50; i++) {
        if (lane.corr[i] === corr) out.push({ lane: ix, start: lane.start[i], end: lane.end[i], name: this.names.get(lane.name[i]) ?? "?", kind: other.kind, rel: other.kind === "call" ? "call" : "work" });
      }
    });
    return out;
  }

  private next(ix: number, t: number, dir: number, name: number): { lane?: number; start: number; end: number } {
    const lane = this.lane(ix);
    const is = (i: number): boolean => (name < 0 || lane.name[i] === name) && (dir ? lane.start[i] > t : lane.start[i] < t);
    if (dir) {
      for (let i = 0; i < lane.n; i++) if (is(i)) return { lane: ix, start: lane.start[i], end: lane.end[i] };
    } else {
      for (let i = lane.n - 1; i >= 0; i--) if (is(i)) return { lane: ix, start: lane.start[i], end: lane.end[i] };
    }
    return { start: 0, end: 0 };
  }

  private gaps(ix: number, limit: number, isBetween: boolean): { n: number; gaps: [number, number, number][] } {
    const lane = this.lane(ix);
    const gaps: [number, number, number][] = [];
    let end = lane.n ? lane.end[0] : 0;
    for (let i = 1; i < lane.n && isBetween; i++) {
      if (lane.start[i] > end) gaps.push([end, lane.start[i], 0]);
      end = Math.max(end, lane.end[i]);
    }
    for (let i = 0; i < lane.n && !isBetween; i++) if (!lane.count || lane.count[i] === 1) gaps.push([lane.start[i], lane.end[i], lane.name[i]]);
    gaps.sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
    return { n: gaps.length, gaps: gaps.slice(0, limit) };
  }

  private search(query: string, isRegex: boolean, isExact: boolean): Hits {
    let test: (text: string) => boolean = (text) => text.toLowerCase().includes(query.toLowerCase());
    if (isExact) test = (text) => text === query;
    if (isRegex) {
      try {
        const regex = new RegExp(query, "i");
        test = (text) => regex.test(text.slice(0, 2048));
      } catch (e) {
        throw new AskError((e as Error).message, 400);
      }
    }
    const wanted = new Set([...this.names].filter(([, text]) => test(text)).map(([id]) => id));
    const meta = this.data.answers.meta;
    const result: Hits = { total: 0, is_cut: false, names: [], buckets: new Array<number>(512).fill(0), hits: [] };
    const counts = new Map<number, number>();
    this.data.pack.lanes.forEach((_, ix) => {
      if (["idle", "device"].includes(meta.rows[this.rowOfLane[ix]]?.kind)) return;
      const lane = this.lane(ix);
      for (let i = 0; i < lane.n; i++) {
        if (!wanted.has(lane.name[i])) continue;
        result.total++;
        counts.set(lane.name[i], (counts.get(lane.name[i]) ?? 0) + 1);
        result.buckets[Math.min(511, Math.max(0, Math.floor(((lane.start[i] - meta.from) / Math.max(1, meta.to - meta.from)) * 512)))]++;
        if (result.hits.length < 20000) result.hits.push([ix, lane.start[i], lane.end[i]]);
      }
    });
    result.names = [...counts].slice(0, 200);
    result.hits = result.hits.sort((a, b) => a[1] - b[1]).slice(0, 2000);
    return result;
  }

  async bytes(name: string, args: Args = {}): Promise<ArrayBuffer> {
    if (name === "curve") return this.curve(Number(args.c));
    return this.tiles(Number(args.l), String(args.t), String(args.r));
  }

  private curve(ix: number): ArrayBuffer {
    const points = this.data.pack.curves[ix] ?? [];
    const n = points.length / 2;
    const view = new DataView(new ArrayBuffer(24 * n));
    for (let i = 0; i < n; i++) {
      view.setFloat64(24 * i, points[2 * i], true);
      for (const at of [8, 12, 16]) view.setFloat32(24 * i + at, points[2 * i + 1], true);
    }
    return view.buffer as ArrayBuffer;
  }

  /** The same bytes as answer_tiles.c makes. */
  private tiles(level: number, t: string, r: string): ArrayBuffer {
    const [first, last] = t.split("-").map(Number);
    const bucket = 2 ** level;
    const width = TILE_BUCKETS * bucket;
    const heads: { lane: number; tile: number; folds: Fold[]; hasShares: boolean }[] = [];
    let size = 16;
    for (const part of r.split(",")) {
      const [a, b] = part.split("-").map(Number);
      for (let lane = a; lane <= (b ?? a); lane++) {
        for (let tile = first; tile <= (last ?? first); tile++) {
          const from = tile * width;
          const folds = foldLane(this.lane(lane), from, from + width, bucket)
            .filter((f) => f.start < from + width && !(f.end <= from && f.start < from));
          const hasShares = this.data.answers.meta.lanes[lane] === 1;
          heads.push({ lane, tile, folds, hasShares });
          size += 16 + Math.ceil((folds.length * (hasShares ? 24 : 16)) / 16) * 16;
        }
      }
    }
    const view = new DataView(new ArrayBuffer(size));
    view.setUint32(0, 0x314c544c, true);
    view.setUint32(4, heads.length, true);
    view.setUint8(8, level);
    view.setUint8(9, 1);
    let at = 16 + 16 * heads.length;
    heads.forEach(({ lane, tile, folds, hasShares }, i) => {
      [lane, tile, folds.length, at].forEach((v, k) => view.setUint32(16 + 16 * i + 4 * k, v, true));
      const from = tile * width;
      for (const f of folds) {
        putRecord(view, at, f, from, from + width, bucket);
        at += 16;
      }
      for (const f of hasShares ? folds : []) {
        const sum = f.by.reduce((x, y) => x + y, 0);
        for (let c = 0; c < 8; c++) view.setUint8(at++, sum ? Math.round((255 * f.by[c]) / sum) : 0);
      }
      at = Math.ceil(at / 16) * 16;
    });
    return view.buffer as ArrayBuffer;
  }
}

function putRecord(view: DataView, at: number, f: Fold, from: number, to: number, bucket: number): void {
  const x0 = Math.round(((Math.max(f.start, from) - from) / bucket) * 256);
  const x1 = Math.round(((Math.min(f.end, to) - from) / bucket) * 256);
  const length = f.end - f.start;
  let busy = length && f.busy < length ? Math.floor((255 * f.busy) / length) : 255;
  if (f.count > 1 && busy === 255) busy = 254;
  let cls = 0;
  for (let c = 1; c < 8; c++) if (f.by[c] > f.by[cls]) cls = c;
  view.setUint32(at, (x0 | (f.start < from ? 0x80000000 : 0)) >>> 0, true);
  view.setUint32(at + 4, (x1 | (f.end > to ? 0x80000000 : 0)) >>> 0, true);
  view.setUint32(at + 8, f.name, true);
  view.setUint16(at + 12, Math.min(65535, f.count), true);
  view.setUint8(at + 14, busy || 1);
  view.setUint8(at + 15, cls);
}

function decodeBase64(text: string): Uint8Array {
  const fast = (Uint8Array as unknown as { fromBase64?: (t: string) => Uint8Array }).fromBase64;
  if (fast) return fast(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function localSource(): Promise<Source | null> {
  const element = document.getElementById("data");
  if (!element) return null;
  const packed = decodeBase64(element.textContent!.trim());
  const Decompression = (window as unknown as { DecompressionStream: new (f: string) => GenericTransformStream }).DecompressionStream;
  const stream = new Blob([packed]).stream().pipeThrough(new Decompression("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Packed;
  element.remove();
  return new LocalSource(data, bytes, 4 + length);
}
