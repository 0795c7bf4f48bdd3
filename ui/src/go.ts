// Going to an event that a table or a list names.

import type { App } from "./app";
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
