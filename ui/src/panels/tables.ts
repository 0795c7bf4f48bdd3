// Panels that are tables: the reports of `lull stats`, several to a tab.

import { h } from "../dom";
import { tableView, emptyState } from "../table";
import type { Cell, Table, TableInfo } from "../types";
import { type Context, type Panel, failure } from "./panel";

const known = new Map<string, Promise<Table>>();

/** The tables of a tab, in the order of their buttons; each report says where it belongs (src/report/report_*.c). */
export function tablesOf(ctx: Context, tab: string): TableInfo[] {
  return ctx.app.meta.tables.filter((t) => t.tab === tab).sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
}

export async function report(ctx: Context, name: string, useRange: boolean, f = ctx.app.report): Promise<Table> {
  if (!ctx.app.meta.tables.some((t) => t.name === name)) {
    return { name, title: name, summary: "", columns: [], rows: [], n: 0, why: `lull ${ctx.app.meta.version} has no table of them.` };
  }
  const range = useRange ? ctx.app.range : null;
  const args = {
    name, from: range ? Math.max(0, Math.round(range.from)) : undefined, to: range ? Math.round(range.to) : undefined, f: f || undefined,
  };
  const key = JSON.stringify(args);
  let answer = known.get(key);
  await ctx.app.names.learn().catch(() => undefined); // then names stay as they are
  if (!answer) {
    if (known.size > 60) known.clear();
    answer = ctx.app.source.ask<Table>("table", args);
    answer.catch(() => known.delete(key));
    known.set(key, answer);
  }
  return answer;
}

/** Look for a name everywhere and go to one of it that is in view or in a steady step; the panel stays. */
export async function showName(ctx: Context, name: string): Promise<void> {
  const plain = name.replace(/^.*?:(?!:)/, (m) => (m.startsWith("aten") ? m : ""));
  await ctx.app.search(name, true);
  if (!ctx.app.hits?.total && plain !== name) await ctx.app.search(plain, true);
  if (!ctx.app.hits?.total && name.length < 80) await ctx.app.search(name.replace(/^\[?CUDA |\]$/g, ""));
  await ctx.app.goToHit(1, true);
  const s = ctx.app.selection;
  if (s) ctx.timeline.showRow(ctx.app.rowOfLane[s.lane]);
}

function tables(place: number, id: string, title: string, empty: string, isAbsent?: Panel["isAbsent"]): Panel {
  let chosen = -1;
  let filter = "";
  let useRange = false;
  return {
    id,
    place,
    title,
    follows: ["range"],
    isAbsent,
    render: (ctx) => {
      const choices = tablesOf(ctx, id);
      if (chosen < 0) chosen = Math.max(0, choices.findIndex((c) => c.has_data));
      const body = h("div", { class: "panel-body" });
      const draw = async (): Promise<void> => {
        body.replaceChildren(h("div", { class: "loading" }, "…"));
        try {
          const choice = choices[chosen];
          const table = await report(ctx, choice.name, useRange && !!ctx.app.range);
          const nameIx = table.columns.findIndex((c) => c.name === choice.names);
          // A range of no domain is its name.
          const shown = choice.names === "Range" ? { ...table, rows: table.rows.map((r) => r.map((c, ix) => (ix === nameIx ? String(c).replace(/^:/, "") : c))) } : table;
          body.replaceChildren(tableView(shown, {
            filter, hidden: ["Style"], names: choice.names,
            onRow: nameIx < 0 ? undefined : (row: Cell[]) => void showName(ctx, String(row[nameIx])),
          }));
          if (!table.rows.length && table.why) body.replaceChildren(emptyState(empty, table.why));
        } catch (e) {
          body.replaceChildren(failure(e));
        }
      };
      const bar = h("div", { class: "panel-bar" },
        choices.length > 1 ? h("div", { class: "choices" }, choices.map((c, ix) => h("button", {
          class: ix === chosen ? "on" : "",
          onclick: (e: Event) => {
            chosen = ix;
            for (const b of (e.target as HTMLElement).parentElement!.children) b.classList.toggle("on", b === e.target);
            void draw();
          },
        }, c.label))) : null,
        h("input", {
          placeholder: "filter", value: filter, "aria-label": `Filter ${title}`,
          oninput: (e: Event) => {
            filter = (e.target as HTMLInputElement).value;
            void draw();
          },
        }),
        h("label", { class: ctx.app.range && !ctx.app.source.isOffline ? "" : "off", title: ctx.app.source.isOffline ? "This file has tables of the whole recording only; `lull view FILE` on the recording has the others" : "Measure a range by a drag on the rows first" }, h("input", {
          type: "checkbox", disabled: !ctx.app.range || ctx.app.source.isOffline, checked: useRange && !!ctx.app.range,
          onchange: (e: Event) => {
            useRange = (e.target as HTMLInputElement).checked;
            void draw();
          },
        }), "measured range only"));
      void draw();
      return h("div", { class: "panel" }, bar, body);
    },
  };
}

export const kernels = tables(40, "kernels", "Kernels", "No kernels were recorded");
export const calls = tables(50, "calls", "Calls", "No calls were recorded");
export const ranges = tables(60, "ranges", "Ranges", "No ranges were recorded");
export const ops = tables(70, "ops", "Ops", "No operators were recorded", (app) => !app.meta.tables.some((t) => t.tab === "ops" && t.has_data));
export const copies = tables(80, "copies", "Copies", "No copies were recorded");
export const collectives = tables(90, "collectives", "Collectives", "No collectives were recorded", (app) => !app.meta.rows.some((r) => r.kind === "collective" || r.title.startsWith("NCCL")));
