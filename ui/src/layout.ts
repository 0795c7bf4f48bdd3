// Where rows are: heights, order, what is open.

import type { App } from "./app";
import type { Row } from "./types";

export interface Line {
  lane: number;
  y: number; // within the row
  h: number;
  depth: number;
}

export interface Placed {
  ix: number;
  row: Row;
  y: number; // from the top of its area
  h: number;
  level: number; // indentation
  isPinned: boolean;
  isGroup: boolean;
  isOpen: boolean;
  nHidden: number; // depths that are not shown
  lines: Line[];
}

export interface Layout {
  pinned: Placed[];
  rows: Placed[];
  pinnedHeight: number;
  height: number;
  nLeft: number; // rows, no groups, that a filter leaves
  nRows: number;
}

const MAX_DEPTH = 6;
const GAP = 3;

/** Height of one line of a row of this kind. */
function lineHeight(kind: string): number {
  switch (kind) {
    case "idle": return 30;
    case "kernel": case "copy": case "memset": case "graph": case "collective": return 19;
    case "range": case "op": case "pycall": case "projected": return 14;
    case "step": return 18;
    case "cpu": return 6;
    case "sample": case "pysample": case "mark": return 8;
    case "curve": return 34;
    case "device": return 18;
    default: return 15;
  }
}

function place(app: App, ix: number, y: number, level: number, isPinned: boolean, isForced = false): Placed {
  const row = app.meta.rows[ix];
  const isGroup = app.isGroup(ix) && !isPinned;
  const isOpen = isGroup && (isForced || !app.collapsed.has(row.key));
  const lines: Line[] = [];
  const height = Math.max(4, lineHeight(row.kind) - (app.isCompact ? 4 : 0));
  const nShown = app.deep.has(row.key) ? row.n_lanes : Math.min(row.n_lanes, MAX_DEPTH);
  let at = isGroup ? 3 : GAP;
  if (isOpen) {
    at = 24;
  } else if (isGroup) {
    const summary = summaryOf(app, ix);
    if (summary.length) lines.push({ lane: summary[0], y: at, h: summary.length > 1 ? 14 : 18, depth: 0 });
    if (summary.length > 1) lines.push({ lane: summary[1], y: at + 15, h: 4, depth: 1 });
    at = 24;
  } else {
    for (let i = 0; i < nShown; i++, at += height + 1) lines.push({ lane: row.lane + i, y: at, h: height, depth: i });
    if (row.curve >= 0) at += height;
    at = Math.max(at + 2, ["cpu", "sample", "pysample", "mark"].includes(row.kind) ? 16 : 21);
    // Centre thin lines: at the top of a row they look lost.
    if (lines.length === 1) lines[0].y = Math.max(GAP, Math.floor((at - lines[0].h) / 2));
  }
  return { ix, row, y, h: at, level, isPinned, isGroup, isOpen, lines, nHidden: isGroup ? 0 : row.n_lanes - nShown };
}

/** The rows that a filter leaves: those that match, what is below them, and the groups above them; null: all. */
function left(app: App): Set<number> | null {
  const needle = app.filter.toLowerCase();
  if (!needle) return null;
  const kept = new Set<number>();
  app.meta.rows.forEach((row, ix) => {
    if (row.is_hidden || !row.title.toLowerCase().includes(needle)) return;
    for (let i = ix; i >= 0; i = app.meta.rows[i].parent) kept.add(i);
    for (const below of collect(app, ix)) kept.add(below);
  });
  return kept;
}

/** What a closed group shows: a device its busy time over its idle time, others their busiest lane. */
function summaryOf(app: App, ix: number): number[] {
  const row = app.meta.rows[ix];
  const below = app.children[ix] ?? [];
  if (row.kind === "device") {
    const idle = below.map((c) => app.meta.rows[c]).find((r) => r.kind === "idle");
    return row.n_lanes ? [row.lane, ...(idle ? [idle.lane] : [])] : [];
  }
  const order = ["range", "op", "pycall", "call", "cpu", "os", "sample", "pysample"];
  let best: Row | null = null;
  for (const c of collect(app, ix)) {
    const candidate = app.meta.rows[c];
    if (!order.includes(candidate.kind) || !candidate.n_lanes) continue;
    if (!best || order.indexOf(candidate.kind) < order.indexOf(best.kind) ||
        (candidate.kind === best.kind && candidate.busy > best.busy)) best = candidate;
  }
  return best ? [best.lane] : [];
}

function collect(app: App, ix: number): number[] {
  return (app.children[ix] ?? []).flatMap((c) => [c, ...collect(app, c)]);
}

export function layOut(app: App): Layout {
  const layout: Layout = { pinned: [], rows: [], pinnedHeight: 0, height: 0, nLeft: 0, nRows: 0 };
  const kept = left(app);
  const needle = app.filter.toLowerCase();
  const isPinned = new Set(app.pinned);
  for (const key of app.pinned) {
    const ix = app.rowByKey(key);
    if (ix < 0) continue;
    const placed = place(app, ix, layout.pinnedHeight, 0, true);
    layout.pinned.push(placed);
    layout.pinnedHeight += placed.h;
  }
  const visit = (ix: number, level: number): void => {
    const row = app.meta.rows[ix];
    if ((isPinned.has(row.key) && !app.isGroup(ix)) || (kept && !kept.has(ix))) return;
    // A group that is there for what is in it is open.
    const placed = place(app, ix, layout.height, level, false, !!kept && !row.title.toLowerCase().includes(needle));
    layout.rows.push(placed);
    layout.height += placed.h;
    if (placed.isOpen) for (const child of app.children[ix] ?? []) visit(child, level + 1);
  };
  app.meta.rows.forEach((row, ix) => {
    if (row.parent < 0 && !row.is_hidden) visit(ix, 0);
  });
  const leaves = app.meta.rows.map((row, ix) => ({ row, ix })).filter(({ row, ix }) => !row.is_hidden && !app.isGroup(ix));
  layout.nRows = leaves.length;
  layout.nLeft = kept ? leaves.filter(({ ix }) => kept.has(ix)).length : leaves.length;
  return layout;
}
