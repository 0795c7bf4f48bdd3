// What each device did from its first work to the end of its last, as `lull stats -r overlap` says. Row numbers come
// from here: those of a device and of its idle time share one whole, and agree with the command line.

import type { App } from "./app";
import { verdictOf } from "./panels/verdict";
import type { Table } from "./types";

/** Shares of the device's span. */
export interface Use {
  span_ns: number;
  busy: number; // any work
  computing: number; // kernels or graphs that are no collectives, whatever else runs
}

const known = new WeakMap<App, Map<string, Use>>(); // by the key of the row
const waiting = new WeakMap<App, number>(); // of the device that the answer is about, in its steady steps

function useOf(table: Table, cells: (string | number | null)[]): Use {
  const ns = (name: string): number => Number(cells[table.columns.findIndex((c) => c.name === name)] ?? 0);
  const span = Math.max(1, ns("Span"));
  const computing = ns("Compute Alone") + ns("Compute+Copy") + ns("Compute+Collective") + ns("All Three");
  return { span_ns: ns("Span"), busy: 1 - ns("Idle") / span, computing: computing / span };
}

/** By the number of the device; of several with one number, in their order. */
function match(app: App, table: Table): Map<string, Use> {
  const left = [...table.rows];
  const uses = new Map<string, Use>();
  app.meta.rows.forEach((row) => {
    const number = row.kind === "device" ? /^gpu(\d+)/.exec(row.key)?.[1] : undefined;
    const at = number === undefined ? -1 : left.findIndex((cells) => String(cells[0]).endsWith(`(${number})`));
    if (at >= 0) uses.set(row.key, useOf(table, left.splice(at, 1)[0]));
  });
  return uses;
}

/** Ask, once the verdict does not need the server any more; "rows" changes when it is known. */
export function askDevices(app: App): void {
  const isFree = app.meta.is_job ? Promise.resolve(true) : verdictOf(app).then((v) => {
    if (v.n_steps) waiting.set(app, v.waiting_share);
    return v.state !== "running";
  });
  void isFree.then(async (is) => {
    if (!is || known.has(app)) return;
    known.set(app, new Map()); // asked
    known.set(app, match(app, await app.source.ask<Table>("table", { name: "overlap", f: app.report || undefined })));
    app.changed("rows");
  }).catch(() => undefined); // without it rows show no number
}

/** For how much of a steady step the device at this row does not compute; undefined if the answer is about another. */
export function stepsWaiting(app: App, rowIx: number): number | undefined {
  return app.opening?.device === app.meta.rows[rowIx]?.key ? waiting.get(app) : undefined;
}

/** Of the device at this row, if it is known. */
export function deviceUse(app: App, rowIx: number): Use | undefined {
  return known.get(app)?.get(app.meta.rows[rowIx]?.key ?? "");
}
