// Health: what was lost, what was recorded and what was not.

import { h } from "../dom";
import * as format from "../format";
import type { Panel } from "./panel";

interface Health {
  is_sealed: boolean;
  n_damaged: number;
  lost_bytes: number;
  warning: string | null;
  issues: { name: string; severity: string; count: number; text: string; detail: string }[];
  meta: [string, string][];
  tables: { name: string; doc: string; n: number; bytes: number }[];
}

/** What many processes say is said once, with the sum, as in `lull info`. */
function addedUp(issues: Health["issues"]): Health["issues"] {
  const once = new Map<string, Health["issues"][number]>();
  for (const i of issues) {
    const key = [i.severity, i.name, i.detail].join("\n");
    once.set(key, { ...i, count: i.count + (once.get(key)?.count ?? 0) });
  }
  return [...once.values()];
}

export const health: Panel = {
  id: "health",
  place: 160,
  title: "Health",
  render: async ({ app }) => {
    const health = await app.source.ask<Health>("health", { f: app.report || undefined });
    const notes: HTMLElement[] = [];
    if (app.meta.is_simulated) notes.push(h("li", { class: "loss" }, "The device was simulated: no GPU did this work, and its times are not real."));
    if (app.meta.notice) notes.push(h("li", { class: "notice" }, `This file does not contain the whole report: ${app.meta.notice}.`));
    if (app.meta.is_imported) notes.push(h("li", { class: "notice" }, "Imported from a file of another tool: what that tool did not record is missing."));
    if (!health.is_sealed) notes.push(h("li", { class: "loss" }, `The recording ended abruptly at ${format.moment(app.meta.to - app.meta.from, 1e6)}; everything before that is shown.`));
    if (health.n_damaged) notes.push(h("li", { class: "loss" }, `${health.n_damaged} ${health.n_damaged === 1 ? "block of the file is" : "blocks of the file are"} damaged: their rows are missing.`));
    if (health.warning) notes.push(h("li", { class: "notice" }, health.warning));
    for (const i of addedUp(health.issues)) {
      notes.push(h("li", { class: i.severity }, h("b", null, `${format.count(i.count)} × ${i.name.replace(/_/g, " ")}`), ` ${i.text}`, i.detail ? h("div", { class: "small mono" }, format.clean(i.detail)) : null));
    }
    if (!notes.length) notes.push(h("li", { class: "good" }, "Nothing was lost or refused, and there are no warnings."));
    const there = health.tables.filter((t) => t.n);
    const absent = health.tables.filter((t) => !t.n);
    return h("div", { class: "columns" },
      h("section", null, h("h4", null, "Losses and warnings"), h("ul", { class: "issues" }, notes)),
      h("section", null, h("h4", null, "Recorded"),
        h("div", { class: "pairs wide" }, there.flatMap((t) => [h("span", { title: t.doc }, t.name.replace(/_/g, " ")), h("span", null, `${format.count(t.n)} · ${format.bytes(t.bytes)}`)])),
        h("h4", null, "Not recorded"), h("div", { class: "small" }, absent.map((t) => t.name.replace(/_/g, " ")).join(", ") || "nothing is missing")),
      h("section", null, h("h4", null, "Machine and recording"),
        h("div", { class: "pairs wide" }, health.meta.flatMap(([k, v]) => [h("span", null, k), h("span", { class: "mono", title: v }, format.clean(v, 90))]))));
  },
};
