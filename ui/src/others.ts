// The other reports that the page shows: each has an App of its own, made once, so that its tiles are kept.

import { App } from "./app";
import { type Verdict, knowVerdict } from "./panels/verdict";
import type { Meta } from "./types";

const others = new Map<number, Promise<App>>();

/** With what its own answer says, so that both show the same roles: the device in question, the launching thread. */
async function make(app: App, report: number): Promise<App> {
  const args = { f: report || undefined };
  // Ranks of a job are analysed together, by its own answer.
  const verdict = app.meta.is_job ? null : app.source.ask<Verdict>("verdict", args).catch(() => null);
  const [meta, answer] = await Promise.all([app.source.ask<Meta>("meta", args), verdict]);
  const other = new App(app.source, meta, report, answer?.open);
  if (answer) knowVerdict(other, answer);
  return other;
}

export function otherOf(app: App, report: number): Promise<App> {
  if (report === app.report) return Promise.resolve(app);
  let other = others.get(report);
  if (!other) {
    other = make(app, report);
    others.set(report, other);
    other.catch(() => others.delete(report));
  }
  return other;
}
