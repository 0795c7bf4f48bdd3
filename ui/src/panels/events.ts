// Events: all events of a row, in the order somebody chooses, a page at a time. The server sorts and counts.

import { h } from "../dom";
import * as format from "../format";
import { goToEvent } from "../go";
import { type Events, lengthsView } from "../lengths";
import { emptyState } from "../table";
import type { Row } from "../types";
import { type Context, type Panel, failure } from "./panel";

const PAGE = 200;
/** The last event that the server begins a page with (MAX_FIRST of answer_events.c). */
const MAX_FIRST = 100000;

type Order = "start" | "length" | "name";

interface State {
  row: string; // key
  name?: [id: number, text: string];
  by: Order;
  isDown: boolean;
  useRange: boolean;
}

let state: State | null = null;

/** Open the list of a row, or of the events of one name in it. */
export function listEvents(ctx: Context, row: string, name?: [number, string], useRange = false): void {
  state = { row, name, by: name ? "length" : "start", isDown: !!name, useRange };
  ctx.app.changed("listed");
  ctx.app.openTab("events");
}

const hasEvents = (r: Row): boolean => r.n_lanes > 0 && r.curve < 0 && !r.is_hidden;

function titleOf(ctx: Context, row: Row): string {
  const parent = row.parent >= 0 ? ctx.app.meta.rows[row.parent].title : "";
  return parent && !row.title.startsWith(parent.split(" ")[0]) ? `${parent}: ${row.title}` : row.title;
}

/** The row that was asked for; else that of the selection; else the kernels. */
function current(ctx: Context): State | null {
  const { app } = ctx;
  const { rows } = app.meta;
  if (state && app.rowByKey(state.row) >= 0) return state;
  const selected = app.selection && app.selection.lane >= 0 ? rows[app.rowOfLane[app.selection.lane]] : undefined;
  const row = selected ?? rows.find((r) => r.kind === "kernel" && r.n > 0) ?? rows.find(hasEvents);
  return row ? { row: row.key, by: "start", isDown: false, useRange: false } : null;
}

function ask(ctx: Context, s: State, first: number): Promise<Events> {
  const { app } = ctx;
  const range = s.useRange ? app.range : null;
  return app.source.ask<Events>("events", {
    lane: app.meta.rows[app.rowByKey(s.row)].lane, name: s.name?.[0], by: s.by, down: s.isDown ? 1 : undefined, first: first || undefined, n: PAGE,
    from: range ? Math.max(0, Math.round(range.from)) : undefined, to: range ? Math.round(range.to) : undefined, f: app.report || undefined,
  });
}

/** A page of rows; a click shows one on the timeline and the list stays. */
async function addRows(ctx: Context, body: HTMLElement, events: Events): Promise<void> {
  const { app, timeline } = ctx;
  const ids = [...new Set(events.rows.map((r) => r[3]))];
  await app.names.learn().catch(() => undefined);
  await app.names.all(ids);
  body.append(...events.rows.map(([lane, start, end, name]) => {
    const full = app.names.get(name) ?? "?";
    const go = (): void => void goToEvent(app, timeline, { lane, start, end }, true);
    return h("tr", { class: "go", tabindex: 0, title: "Show on the timeline", onclick: go, onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter") go(); } },
      h("td", { class: "num" }, format.moment(start - app.meta.from, 100)), h("td", { class: "num" }, end > start ? format.duration(end - start) : ""),
      h("td", { class: "text", title: format.clean(full, 2000) }, format.shortOf(full) ?? format.clean(full, 300)));
  }));
}

const HEADS: [Order, string, string][] = [["start", "Start", "num"], ["length", "Duration", "num"], ["name", "Name", "text"]];

function tableOf(ctx: Context, s: State, events: Events, draw: () => void): HTMLElement {
  const body = h("tbody");
  const foot = h("div", { class: "table-foot" });
  let nShown = 0;
  const add = async (more: Events): Promise<void> => {
    await addRows(ctx, body, more);
    nShown += more.rows.length;
    foot.replaceChildren(`${format.count(nShown)} of ${format.count(more.n)} ${more.n === 1 ? "event" : "events"}${more.is_cut ? ", and more that were not counted" : ""} `);
    if (nShown >= more.n || !more.rows.length) return;
    foot.append(nShown > MAX_FIRST ? "(another order, or a measured range, shows others)" : moreButton());
  };
  const moreButton = (): HTMLElement => {
    const button = h("button", {
      onclick: () => {
        button.disabled = true; // one page for two clicks
        void ask(ctx, s, nShown).then(add).catch((e: unknown) => foot.replaceChildren(failure(e), moreButton()));
      },
    }, "more");
    return button;
  };
  void add(events).catch((e: unknown) => foot.replaceChildren(failure(e)));
  const heads = HEADS.map(([by, text, cls]) => h("th", { class: cls, "aria-sort": s.by === by ? (s.isDown ? "descending" : "ascending") : undefined },
    h("button", {
      onclick: () => {
        s.isDown = s.by === by ? !s.isDown : by === "length";
        s.by = by;
        draw();
      },
    }, text, s.by === by ? (s.isDown ? " ↓" : " ↑") : "")));
  return h("div", { class: "table-box" }, h("table", null, h("thead", null, h("tr", null, heads)), body), foot);
}

function barOf(ctx: Context, s: State, draw: () => void): HTMLElement {
  const { app } = ctx;
  const rows = app.meta.rows.filter((r) => hasEvents(r) && (r.n > 0 || r.key === s.row));
  const select = h("select", { "aria-label": "Row", onchange: () => { s.row = select.value; s.name = undefined; draw(); } },
    rows.map((r) => h("option", { value: r.key, selected: r.key === s.row }, format.clean(titleOf(ctx, r), 80))));
  return h("div", { class: "panel-bar" }, select,
    s.name ? h("button", { class: "chip", title: "Show all names", onclick: () => { s.name = undefined; draw(); } }, `only ${format.short(s.name[1])} ×`) : null,
    h("label", { class: app.range ? "" : "off", title: "Measure a range by a drag on the rows first" }, h("input", {
      type: "checkbox", disabled: !app.range, checked: s.useRange && !!app.range,
      onchange: (e: Event) => { s.useRange = (e.target as HTMLInputElement).checked; draw(); },
    }), "measured range only"));
}

export const events: Panel = {
  id: "events",
  place: 35,
  title: "Events",
  follows: ["range", "listed"],
  render: async (ctx) => {
    const s = current(ctx);
    if (!s) return emptyState("No events were recorded", "The recording has no row with events.");
    state = s;
    const box = h("div", { class: "panel" });
    const draw = async (): Promise<void> => {
      try {
        const answer = await ask(ctx, s, 0);
        const head = h("div", { class: "events-head" },
          h("span", null, `${format.count(answer.n)} ${answer.n === 1 ? "event" : "events"}${answer.ns ? `, together ${format.duration(answer.ns)}, ${format.duration(answer.ns / Math.max(1, answer.n))} each on average` : ""}`), lengthsView(answer));
        box.replaceChildren(barOf(ctx, s, () => void draw()), head, answer.n ? tableOf(ctx, s, answer, () => void draw()) : emptyState("No events here", "Nothing of this row is in this time."));
      } catch (e) {
        box.replaceChildren(barOf(ctx, s, () => void draw()), failure(e));
      }
    };
    await draw();
    return box;
  },
};
