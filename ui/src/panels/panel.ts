// A panel: one tab of the drawer. To add one: a file here that exports it; index.ts finds it there.

import type { App } from "../app";
import type { Timeline } from "../timeline";
import { h } from "../dom";
import { AskError } from "../source";
import { emptyState } from "../table";

export interface Context {
  app: App;
  timeline: Timeline;
}

export interface Panel {
  id: string;
  /** Tabs are in the order of these. */
  place: number;
  title: string;
  /** Drawn again when this changes; always when it is opened. */
  follows?: ("selection" | "range" | "verdict" | "listed")[];
  /** Kept when another tab is opened and shown again as it was. */
  render: (ctx: Context) => HTMLElement | Promise<HTMLElement>;
  /** Whether the recording has nothing for it: its tab comes last then, and the panel says how to record it. */
  isAbsent?: (app: App) => boolean;
  /** Needs more than half of the window. */
  isTall?: boolean;
}

/** A panel that cannot be made says why, and the others still work. */
export function failure(e: unknown): HTMLElement {
  if (e instanceof AskError && e.status === 404) return emptyState("Not in this report", e.message);
  if ((e as Error).name === "AbortError") return h("div");
  return emptyState("That did not work", (e as Error).message || String(e));
}
