// Keys: one table; the help is made from it.

import type { App } from "./app";
import type { Args } from "./source";
import type { Timeline } from "./timeline";
import type { Selected } from "./types";

export interface Command {
  keys: string[]; // as they are shown
  text: string;
  /** Whether the event asks for it. */
  is: (e: KeyboardEvent) => boolean;
  run: (e: KeyboardEvent) => void;
}

export interface Actions {
  focusSearch: () => void;
  toggleHelp: () => void;
  toggleTheme: () => void;
  goTo: () => void;
  clear: () => void;
  share: () => void;
  openTabAt: (ix: number) => void;
}

const code = (...codes: string[]) => (e: KeyboardEvent) => codes.includes(e.code);
const key = (...keys: string[]) => (e: KeyboardEvent) => keys.includes(e.key);

export function commands(app: App, timeline: Timeline, actions: Actions): Command[] {
  const at = (): number | undefined => (timeline.pointer ? timeline.timeAt(timeline.pointer.x) : undefined);
  const speed = (e: KeyboardEvent): number => (e.repeat ? 1.6 : 1);
  return [
    { keys: ["W", "S"], text: "zoom in, out at the pointer", is: code("KeyW"), run: (e) => app.zoom(1 / (1 + 0.3 * speed(e)), at()) },
    { keys: [], text: "", is: code("KeyS"), run: (e) => app.zoom(1 + 0.3 * speed(e), at()) },
    { keys: ["A", "D", "←", "→"], text: "pan", is: (e) => e.code === "KeyA" || e.key === "ArrowLeft", run: (e) => app.pan(-0.15 * speed(e)) },
    { keys: [], text: "", is: (e) => e.code === "KeyD" || e.key === "ArrowRight", run: (e) => app.pan(0.15 * speed(e)) },
    { keys: ["↑", "↓"], text: "scroll rows", is: key("ArrowUp"), run: () => timeline.scrollTo(timeline.scrollY - 60) },
    { keys: [], text: "", is: key("ArrowDown"), run: () => timeline.scrollTo(timeline.scrollY + 60) },
    { keys: ["F"], text: "zoom to the selection; again: to its step", is: key("f", "F"), run: () => frame(app) },
    { keys: ["Home"], text: "steady steps, where the page opens", is: key("Home"), run: () => app.show(app.first()) },
    { keys: ["0"], text: "whole run", is: key("0"), run: () => app.show(app.whole()) },
    { keys: ["Backspace"], text: "previous view; Shift: next view", is: key("Backspace"), run: (e) => (e.shiftKey ? app.forth() : app.back()) },
    { keys: ["/"], text: "search; Enter, Shift Enter: next, previous hit", is: key("/"), run: () => actions.focusSearch() },
    { keys: ["G"], text: "go to a time or step", is: key("g", "G"), run: () => actions.goTo() },
    { keys: ["N"], text: "next gap like this; Shift: the previous one; without selection: the longest of the steady steps", is: key("n", "N"), run: (e) => void nextGap(app, timeline, e.shiftKey ? -1 : 1) },
    { keys: [",", "."], text: "previous, next event in the lane", is: key(","), run: () => void neighbour(app, timeline, 0, false) },
    { keys: [], text: "", is: key("."), run: () => void neighbour(app, timeline, 1, false) },
    { keys: ["[", "]"], text: "previous, next event of the same name", is: key("["), run: () => void neighbour(app, timeline, 0, true) },
    { keys: [], text: "", is: key("]"), run: () => void neighbour(app, timeline, 1, true) },
    { keys: ["R"], text: "measure the selection: make it the range", is: key("r", "R"), run: () => { if (app.selection) app.setRange({ from: app.selection.start, to: app.selection.end }); } },
    { keys: ["M"], text: "mark this time; again: unmark", is: key("m", "M"), run: () => mark(app, at()) },
    { keys: ["P"], text: "pin or unpin the row under the pointer", is: key("p", "P"), run: () => { const hit = timeline.pointer && timeline.at(timeline.pointer.y); if (hit) app.pin(hit.placed.row.key); } },
    { keys: ["E"], text: "open all groups, or close them again", is: key("e", "E"), run: () => toggleAll(app) },
    { keys: ["C"], text: "compact rows", is: key("c", "C"), run: () => { app.isCompact = !app.isCompact; app.changed("rows"); } },
    { keys: ["Q"], text: "show or hide the drawer; 1 … 9: its tabs", is: key("q", "Q"), run: () => { app.isDrawerOpen = !app.isDrawerOpen; app.changed("drawer"); } },
    { keys: [], text: "", is: (e) => /^[1-9]$/.test(e.key), run: (e) => actions.openTabAt(Number(e.key) - 1) },
    { keys: ["L"], text: "light or dark", is: key("l", "L"), run: () => actions.toggleTheme() },
    { keys: ["Esc"], text: "clear search, then selection, then range", is: key("Escape"), run: () => actions.clear() },
    { keys: ["?"], text: "these keys", is: key("?"), run: () => actions.toggleHelp() },
  ];
}

export function listen(all: Command[], isBusy: () => boolean): void {
  window.addEventListener("keydown", (e) => {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || isBusy()) return;
    if (target.tagName === "BUTTON" && (e.key === "Enter" || e.key === " ")) return;
    const command = all.find((c) => c.is(e));
    if (!command) return;
    e.preventDefault();
    command.run(e);
  });
}

function frame(app: App): void {
  const s = app.selection;
  if (app.range) app.frame(app.range);
  else if (s) app.frame({ from: s.start, to: s.end });
}

function mark(app: App, t: number | undefined): void {
  if (t === undefined) return;
  const near = app.marks.find((m) => Math.abs(m - t) < (app.view.to - app.view.from) / 200);
  app.marks = near === undefined ? [...app.marks, t] : app.marks.filter((m) => m !== near);
  app.changed("view");
}

function toggleAll(app: App): void {
  const groups = app.meta.rows.filter((_, ix) => app.isGroup(ix)).map((r) => r.key);
  app.collapsed = app.collapsed.size ? new Set() : new Set(groups);
  app.changed("rows");
}

interface Neighbour {
  lane?: number;
  start: number;
  end: number;
}

export async function neighbour(app: App, timeline: Timeline, dir: number, isSame: boolean): Promise<void> {
  const s = app.selection;
  if (!s || s.lane < 0) return; // a measured range is on no lane
  const found = await app.source.ask<Neighbour>("next", {
    lane: s.lane, t: Math.round(s.type === "gap" && dir ? s.end - 1 : s.start), dir,
    name: isSame ? s.nameId : undefined, f: app.report || undefined,
  });
  if (found.lane !== undefined) await go(app, timeline, found.lane, found);
}

async function go(app: App, timeline: Timeline, lane: number, span: Neighbour): Promise<Selected | null> {
  app.openTo(app.rowOfLane[lane]);
  app.reveal({ from: span.start, to: span.end });
  timeline.showRow(app.rowOfLane[lane]);
  return app.selectAt(lane, (span.start + span.end) / 2);
}

/** The idle lane that a key acts on: the selected one, or that of the device that waits most. */
export function idleLane(app: App): number {
  const selected = app.selection && app.meta.rows[app.rowOfLane[app.selection.lane]];
  if (selected?.kind === "idle") return selected.lane;
  const idle = app.meta.rows.filter((r) => r.kind === "idle").sort((a, b) => b.busy - a.busy)[0];
  return idle ? idle.lane : -1;
}

type Gap = [number, number, number];

/** The longest gaps of the steady steps; of all of the run if the selected one is not among these steps. */
async function gapsOf(app: App, lane: number, selected: Selected | null): Promise<Gap[]> {
  const o = app.opening;
  const isSteady = (from: number, to: number): boolean => !!o && from < o.steady_to && to > o.steady_from;
  const ask = async (args: Args): Promise<Gap[]> => (await app.source.ask<{ gaps: Gap[] }>("gaps", { lane, n: 500, ...args, f: app.report || undefined })).gaps;
  if (!o || (selected && !isSteady(selected.start, selected.end))) return ask({});
  const gaps = (await ask({ from: o.steady_from, to: o.steady_to })).filter((g) => isSteady(g[0], g[1]));
  return gaps.length ? gaps : ask({});
}

export async function nextGap(app: App, timeline: Timeline, dir: number): Promise<void> {
  const lane = idleLane(app);
  if (lane < 0) return;
  const s = app.selection;
  const isIdle = s && app.meta.rows[app.rowOfLane[s.lane]]?.kind === "idle";
  const gaps = await gapsOf(app, lane, isIdle ? s : null);
  if (!gaps.length) return;
  let next = gaps[0];
  if (isIdle) {
    // Gaps like this one: same cause, at least half as long, by time.
    const length = s.end - s.start;
    const like = gaps.filter((g) => g[1] - g[0] >= length / 2 && g[2] === s.nameId).sort((a, b) => a[0] - b[0]);
    const found = dir > 0 ? like.find((g) => g[0] > s.start) : [...like].reverse().find((g) => g[0] < s.start);
    if (found) next = found;
    else if (like.length) next = dir > 0 ? like[0] : like[like.length - 1];
  }
  const span = { start: next[0], end: next[1] };
  if (next[1] - next[0] < (app.view.to - app.view.from) / 60) {
    const air = (next[1] - next[0]) * 6;
    app.show({ from: next[0] - air, to: next[1] + air });
  }
  await go(app, timeline, lane, span);
}
