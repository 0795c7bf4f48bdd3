// What a right click on the title of a row offers.

import type { Placed } from "./layout";
import { menu } from "./menu";
import { listEvents } from "./panels/events";
import type { Context } from "./panels/panel";

export function rowMenu(ctx: Context, p: Placed, x: number, y: number): void {
  const { app, timeline } = ctx;
  const { row } = p;
  const hasEvents = row.n_lanes > 0 && row.curve < 0;
  const items: ([string, () => void] | null)[] = [
    hasEvents ? ["List its events", () => listEvents(ctx, row.key)] : null,
    [app.pinned.includes(row.key) ? "Unpin" : "Pin to the top", () => app.pin(row.key)],
    p.isGroup ? [p.isOpen ? "Close" : "Open", () => app.toggle(row.key)] : null,
    p.nHidden || app.deep.has(row.key) ? [app.deep.has(row.key) ? "Show fewer lines" : "Show all lines", () => timeline.toggleDepth(row.key)] : null,
    ["Show only rows like this", () => { app.filter = row.title; app.changed("rows"); }],
    app.filter ? ["Show all rows", () => { app.filter = ""; app.changed("rows"); }] : null,
  ];
  menu(x, y, items.filter((i): i is [string, () => void] => i !== null));
}
