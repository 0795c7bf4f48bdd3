// The view in the address: a link shows a colleague the same. Only what stands after "#": the token in
// front of it never leaves the machine.

import type { App } from "./app";

const MAX_TOGGLED = 60; // groups; an address has to fit into a message

const list = (keys: string[]): string => keys.map(encodeURIComponent).join(",");

export function encode(app: App): string {
  const parts: string[] = [];
  const first = app.first();
  const { from, to } = app.view;
  if (from !== first.from || to !== first.to) parts.push(`v=${Math.round(from)}+${Math.round(to - from)}`);
  const s = app.selection;
  if (s && s.type !== "range") parts.push(`s=${encodeURIComponent(s.row)}:${s.lane - (app.meta.rows[app.rowOfLane[s.lane]]?.lane ?? 0)}:${Math.round((s.start + s.end) / 2)}`);
  if (app.range) parts.push(`r=${Math.round(app.range.from)}+${Math.round(app.range.to - app.range.from)}`);
  if (app.area.length) parts.push(`a=${list(app.area)}`);
  if (app.tab !== app.firstTab) parts.push(`p=${app.tab}`);
  if (!app.isDrawerOpen) parts.push("q=0");
  if (app.query) parts.push(`find=${encodeURIComponent(app.query)}`);
  const { pinned, collapsed } = app.atFirst;
  if (app.pinned.join() !== pinned.join()) parts.push(`pin=${list(app.pinned)}`);
  const toggled = [...new Set([...collapsed, ...app.collapsed])].filter((key) => collapsed.has(key) !== app.collapsed.has(key) && !app.roomy.has(key));
  if (toggled.length) parts.push(`t=${list(toggled.slice(0, MAX_TOGGLED))}`);
  if (app.filter) parts.push(`rows=${encodeURIComponent(app.filter)}`);
  if (app.marks.length) parts.push(`m=${app.marks.map(Math.round).join(",")}`);
  if (app.report) parts.push(`f=${app.report}`);
  return parts.join("&");
}

/** The report that an address names. */
export function reportOf(hash: string): number {
  const n = Number(new URLSearchParams(hash.replace(/^#/, "")).get("f") ?? 0);
  return Number.isInteger(n) && n >= 0 && n < 65536 ? n : 0;
}

function span(text: string | null): { from: number; to: number } | null {
  // A plus sign is a blank to URLSearchParams.
  const match = /^(-?\d+)[+ ](\d+)$/.exec(text ?? "");
  return match ? { from: Number(match[1]), to: Number(match[1]) + Number(match[2]) } : null;
}

/** Pins, open groups, the filter and marks. */
function layout(app: App, args: URLSearchParams): void {
  const keys = (name: string): string[] => (args.get(name) ?? "").split(",").filter((key) => app.rowByKey(key) >= 0);
  if (args.has("pin")) app.pinned = keys("pin");
  for (const key of keys("t")) if (!app.collapsed.delete(key)) app.collapsed.add(key);
  app.filter = args.get("rows") ?? "";
  app.marks = (args.get("m") ?? "").split(",").map(Number).filter((t) => t > 0);
  app.changed("rows", "view");
}

export async function decode(app: App, hash: string): Promise<void> {
  const args = new URLSearchParams(hash.replace(/^#/, ""));
  const view = span(args.get("v"));
  const range = span(args.get("r"));
  if (view) app.show(view, false);
  if (range) app.setRange(range, (args.get("a") ?? "").split(",").filter((key) => app.rowByKey(key) >= 0));
  if (args.get("q") === "0") app.isDrawerOpen = false;
  layout(app, args);
  const find = args.get("find");
  if (find) await app.search(find).catch(() => undefined);
  const picked = /^(.*):(\d+):(\d+)$/.exec(args.get("s") ?? "");
  if (picked) {
    const ix = app.rowByKey(picked[1]);
    if (ix >= 0) {
      app.openTo(ix);
      await app.selectAt(app.meta.rows[ix].lane + Number(picked[2]), Number(picked[3])).catch(() => undefined);
    }
  }
  const tab = args.get("p");
  if (tab) app.tab = tab;
  app.changed("drawer");
}
