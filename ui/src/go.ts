// Going to an event that a table or a list names, and to what somebody types.

import type { App } from "./app";
import * as format from "./format";
import { stepsOf } from "./panels/steps";
import type { Timeline } from "./timeline";
import type { Selected } from "./types";

export interface Place {
  lane: number;
  start: number;
  end: number;
}

/**
 * Show and select it. Events that overlap share a row on several lines: lists name the row, and the lines are tried one
 * by one.
 */
export async function goToEvent(app: App, timeline: Timeline, at: Place, keepTab = false): Promise<Selected | null> {
  const ix = app.rowOfLane[at.lane];
  const row = app.meta.rows[ix];
  app.openTo(ix);
  app.reveal({ from: at.start, to: at.end }, keepTab);
  timeline.showRow(ix);
  const lanes = row ? [at.lane, ...Array.from({ length: row.n_lanes }, (_, l) => row.lane + l).filter((l) => l !== at.lane)] : [at.lane];
  for (const lane of lanes.slice(0, 12)) {
    const found = await app.source.ask<Selected>("event", { lane, t: Math.max(0, Math.round((at.start + at.end) / 2)), f: app.report || undefined });
    if (found.type === "event" && found.start === at.start && found.end === at.end) return app.take(found, keepTab);
  }
  return app.selectAt(at.lane, (at.start + at.end) / 2, 0, keepTab);
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, "": 1e9 };

/** Show the step of this number and select it; gives why that does not work. */
async function goToStep(app: App, number: number): Promise<string> {
  const answer = await stepsOf(app, { number });
  const all = answer.steps.filter((s) => s[0] === number);
  const step = all.find((s) => s[2] > app.view.from) ?? all[0];
  if (!step) return answer.n ? `There is no step ${number}${app.source.isOffline && answer.n > answer.steps.length ? " in this file, which lists only the first ones" : ""}.` : "No steps were recorded.";
  const at = (step[1] + step[2]) / 2;
  const rows = app.meta.rows.filter((r) => r.kind === "step" && !r.is_hidden).sort((a, b) => Number(app.pinned.includes(b.key)) - Number(app.pinned.includes(a.key)));
  for (const row of rows) {
    const found = await app.source.ask<Selected>("event", { lane: row.lane, t: Math.round(at), f: app.report || undefined });
    if (found.type !== "event" || found.name !== `step ${number}`) continue;
    app.openTo(app.rowOfLane[row.lane]);
    app.frame({ from: found.start, to: found.end });
    app.take(found);
    return "";
  }
  app.frame({ from: step[1], to: step[2] });
  return "";
}

/** "1.5s", "200 ms" or "step 12"; gives why one cannot go there. */
export async function goToText(app: App, text: string): Promise<string> {
  const step = /^step\s*(\d+)$/i.exec(text);
  const time = /^(\d+\.?\d*|\.\d+)\s*(ns|us|µs|ms|s|)$/.exec(text);
  if (step) return goToStep(app, Number(step[1])).catch((e: Error) => e.message);
  if (!time) return "Write a time, such as 1.5 s or 200 ms, or a step, such as step 12.";
  const t = app.meta.from + Number(time[1]) * UNITS[time[2]];
  if (t > app.meta.to) return `The recording ends at ${format.duration(app.meta.to - app.meta.from)}.`;
  const half = (app.view.to - app.view.from) / 2;
  app.show({ from: t - half, to: t + half });
  return "";
}
