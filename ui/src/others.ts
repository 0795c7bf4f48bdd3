// The other reports that the page shows: each has an App of its own, made once, so that its tiles are kept.

import { App } from "./app";
import type { Meta } from "./types";

const others = new Map<number, Promise<App>>();

export function otherOf(app: App, report: number): Promise<App> {
  if (report === app.report) return Promise.resolve(app);
  let other = others.get(report);
  if (!other) {
    other = app.source.ask<Meta>("meta", { f: report || undefined }).then((meta) => new App(app.source, meta, report));
    others.set(report, other);
    other.catch(() => others.delete(report));
  }
  return other;
}
