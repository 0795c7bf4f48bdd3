// The page as one file. What was asked of the server when the file was made is given as it was: no answer is computed here.
// Only what depends on the view (tiles, the event under the pointer, a search) is looked up in the packed lanes.

import { eventsOf, sumsOf } from "./local_events";
import { type Lanes, sumUp } from "./local_receipt";
import { type Args, AskError, type Source } from "./source";
import { TILE_BUCKETS } from "./tiles";
import type { Around, Hits, Link, Meta, Path, Selected } from "./types";

interface Packed {
  answers: Record<string, unknown> & { meta: Meta };
  pack: { unit: number; notice: string | null; from?: number; to?: number; lanes: [number, number, number][]; names: [number, string][]; curves: number[][] };
}

const AROUND = ["op", "range", "pycall"];
const WORK = ["kernel", "copy", "memset", "graph"];
const CORRELATIONS = 2 ** 32; // a process has as many

/** Events, or folds of them, of one lane; times in ns. */
interface Lane {
  n: number;
  start: Float64Array;
  end: Float64Array;
  name: Uint32Array; // ids
  cls: Uint8Array;
  link: Float64Array; // process and correlation: equal for a call and its work; 0 for none
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
    n, start: new Float64Array(n), end: new Float64Array(n), name: new Uint32Array(n), cls: new Uint8Array(n), link: new Float64Array(n),
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
  let link = 0;
  for (let i = 0; i < n; i++) lane.link[i] = link += r.i();
  for (let i = 0; isFolded && i < n; i++) lane.count![i] = r.u();
  for (let i = 0; isFolded && i < n; i++) lane.busy![i] = r.byte();
  for (let i = 0; i < n; i++) {
    lane.start[i] *= unit;
    lane.end[i] *= unit;
  }
  return lane;
}

/** Index of the first that ends after t. */
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

/** Of what is not in the file, and cannot be made of it. */
const refuse = (what: string): never => {
  throw new AskError(`This file does not contain ${what}; \`lull view FILE\` on the recording does.`, 404);
};

export class LocalSource implements Source {
  readonly isOffline = true;
  private readonly lanes: (Lane | null)[];
  private readonly names: Map<number, string>;
  private readonly rowOfLane: number[] = [];
  private readonly all: Lanes;

  constructor(private readonly data: Packed, private readonly packed: Uint8Array, private readonly base: number) {
    this.lanes = new Array<Lane | null>(data.pack.lanes.length).fill(null);
    this.names = new Map(data.pack.names);
    this.all = { meta: data.answers.meta, lane: (ix) => this.lane(ix), name: (id) => this.names.get(id) ?? "?" };
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
    return Promise.reject(new AskError("A file cannot run SQL; `lull view FILE` on the recording does.", 501));
  }

  private answer(name: string, args: Args): unknown {
    const n = (key: string): number => Number(args[key] ?? 0);
    switch (name) {
      case "names": return String(args.id).split(",").map((id) => this.names.get(Number(id)) ?? "?");
      case "event": return this.event(n("lane"), n("t"), n("slack"));
      case "next": return this.next(n("lane"), n("t"), n("dir"), args.name === undefined ? -1 : n("name"));
      case "gaps": return this.known(args.between === undefined ? `gaps:${args.lane}` : `gaps:${args.lane}:between`, "the gaps of this row");
      case "search": return this.search(String(args.q), args.regex !== undefined, args.exact !== undefined, args.from === undefined ? null : n("from"), n("at"));
      case "receipt": return sumUp(this.all, n("from"), n("to"));
      case "events": return eventsOf(this.all, args);
      case "sums": return sumsOf(this.all, args);
      case "table": return args.from === undefined ? this.known(`table:${args.name}`, "this table") : refuse("tables of a part of the time");
      case "source": return args.n === undefined ? this.known("source", "source") : this.known(`source:${args.n}`, "source");
      case "flame": return args.from === undefined ? this.known(`flame:${args.kind ?? "native"}${args.whole ? ":whole" : ""}${args.thread ? `@${args.thread}` : ""}`, "this flame graph") : refuse("flame graphs of a part of the time");
      case "path": return this.path(n("from"), n("to"));
      default: return this.known(name, "it");
    }
  }

  private known(key: string, what: string): unknown {
    return this.data.answers[key] ?? refuse(what);
  }

  /** Of the step at this time; times of the file may be rounded. */
  private path(from: number, to: number): Path {
    const unit = 2 ** this.data.pack.unit;
    const found = Object.entries(this.data.answers).find(([key, value]) => key.startsWith("path:") && Math.abs((value as Path).from - from) <= unit && Math.abs((value as Path).to - to) <= unit);
    return found ? structuredClone(found[1] as Path) : refuse("the critical path of this step");
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
      nameId: lane.name[found], class: lane.cls[found], fields: lane.link[found] ? [["correlation", lane.link[found] % CORRELATIONS, ""]] : [],
      links: this.links(row.kind, lane.link[found]), around: this.around(ix, found, row.kind, lane.link[found]),
    };
  }

  /** The call of a piece of work, or the work of a call; who waited for what is known to the server only. */
  private links(kind: string, link: number): Link[] {
    const wanted = kind === "call" ? WORK : WORK.includes(kind) ? ["call"] : [];
    const out: Link[] = [];
    if (!link) return out;
    this.rowOfLane.forEach((row, ix) => {
      const other = this.data.answers.meta.rows[row];
      if (!wanted.includes(other.kind)) return;
      const lane = this.lane(ix);
      for (let i = 0; i < lane.n && out.length < 50; i++) {
        if (lane.link[i] === link) out.push({ lane: ix, start: lane.start[i], end: lane.end[i], name: this.names.get(lane.name[i]) ?? "?", kind: other.kind, rel: other.kind === "call" ? "call" : "work" });
      }
    });
    return out;
  }

  /** The operator and range around it or around the call that launched it; lines of code are in stacks, which are not here. */
  private around(ix: number, found: number, kind: string, link: number): Around[] {
    const { rows } = this.data.answers.meta;
    const call = WORK.includes(kind) ? this.links(kind, link).find((l) => l.rel === "call") : undefined;
    const at = call ?? { lane: ix, start: this.lane(ix).start[found], end: this.lane(ix).end[found] };
    const thread = rows[this.rowOfLane[at.lane]].parent;
    const out: Around[] = [];
    if (rows[thread]?.kind !== "thread") return out;
    for (const row of rows.filter((r) => r.parent === thread && AROUND.includes(r.kind))) {
      let best: Around | undefined;
      for (let l = row.lane; l < row.lane + row.n_lanes; l++) {
        const lane = this.lane(l);
        for (let i = firstAfter(lane, at.start); i < lane.n && lane.start[i] <= at.start; i++) {
          if ((l === at.lane && lane.start[i] === at.start) || (best && best.end - best.start <= lane.end[i] - lane.start[i])) continue;
          best = { kind: row.kind, name: this.names.get(lane.name[i]) ?? "?", lane: l, start: lane.start[i], end: lane.end[i] };
        }
      }
      if (best) out.push(best);
    }
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

  private search(query: string, isRegex: boolean, isExact: boolean, from: number | null, at: number): Hits {
    let test: (text: string) => boolean = (text) => text.toLowerCase().includes(query.toLowerCase());
    // Of a long name, as much as was given: src/page/answer_search.c.
    if (isExact) test = (text) => text === query || (query.length >= 600 && text.startsWith(query));
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
    const isFolded = this.data.pack.lanes.some(([, , is]) => is); // then single events are missing
    const result: Hits = { total: 0, n: 0, first: 0, here: 0, is_cut: isFolded, names: [], buckets: new Array<number>(512).fill(0), hits: [] };
    const counts = new Map<number, number>();
    this.data.pack.lanes.forEach((_, ix) => {
      const row = meta.rows[this.rowOfLane[ix]];
      // What is made of other rows would be found twice.
      if (["idle", "device", "projected"].includes(row?.kind) || row?.key === "rounds") return;
      const lane = this.lane(ix);
      for (let i = 0; i < lane.n; i++) {
        if (!wanted.has(lane.name[i])) continue;
        result.total++;
        counts.set(lane.name[i], (counts.get(lane.name[i]) ?? 0) + 1);
        result.buckets[Math.min(511, Math.max(0, Math.floor(((lane.start[i] - meta.from) / Math.max(1, meta.to - meta.from)) * 512)))]++;
        result.hits.push([ix, lane.start[i], lane.end[i]]);
      }
    });
    result.names = [...counts].slice(0, 200);
    result.hits.sort((a, b) => a[1] - b[1]);
    result.n = result.hits.length;
    const here = result.hits.findIndex((hit) => hit[1] >= at);
    result.here = from ?? (here < 0 ? 0 : here);
    result.first = from ?? Math.max(0, result.here - 1000);
    result.hits = result.hits.slice(result.first, result.first + 2000);
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
