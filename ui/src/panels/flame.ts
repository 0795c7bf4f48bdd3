// Flame graph: samples of the CPU or of Python by call path, of the steady steps, the measured range or the whole run.

import { h } from "../dom";
import { type FlameNode, type FlatNode, around, invert, matched, nameOf, treeOf } from "../flame_tree";
import * as format from "../format";
import { emptyState } from "../table";
import { type Context, type Panel, failure } from "./panel";

interface Flame {
  total: number;
  unit: string;
  from: number;
  to: number;
  is_steady: boolean;
  n_native: number;
  n_python: number;
  threads: [key: string, weight: number][];
  nodes: FlatNode[];
}

type Scope = "steady" | "range" | "whole";

const KINDS = ["", "native", "python", "kernel", "native"];
const LINE = 19;

/** What was chosen; it stays while other tabs are open. */
const chosen = { kind: "", scope: "steady" as Scope, thread: "", isInverted: false, query: "" };

/** A function, a part of its name, or a regular expression between slashes; null if it is none. */
function matcher(query: string): ((label: string) => boolean) | null {
  const regex = /^\/(.+)\/$/.exec(query);
  if (!query) return null;
  try {
    const is = regex ? new RegExp(regex[1], "i") : null;
    return (label) => (is ? is.test(label) : label.toLowerCase().includes(query.toLowerCase()));
  } catch {
    return null;
  }
}

class View {
  private path: FlameNode[] = []; // zoomed into these, the last is the root
  private focus = ""; // function of which callers and callees are shown
  private tree: FlameNode;

  constructor(private readonly flame: Flame, private readonly box: HTMLElement) {
    this.tree = treeOf(flame.nodes);
    if (chosen.isInverted) this.tree = invert(this.tree);
  }

  private cost(weight: number): string {
    return this.flame.unit === "ns" ? format.duration(weight) : `${format.count(weight)} ${weight === 1 ? "sample" : "samples"}`;
  }

  draw(): void {
    if (this.focus) this.drawAround();
    else this.drawTree();
  }

  private show(path: FlameNode[], focus = ""): void {
    this.path = path;
    this.focus = focus;
    this.draw();
  }

  /** Boxes from the root down; a click makes a box the root. */
  private boxes(root: FlameNode, click: (node: FlameNode) => void): HTMLElement {
    const width = Math.max(200, this.box.clientWidth - 16);
    const is = matcher(chosen.query);
    const parts: HTMLElement[] = [];
    const total = Math.max(1, root.weight);
    let depth = 0;
    const place = (node: FlameNode, x: number, level: number): void => {
      const w = (node.weight / total) * width;
      if (w < 2 || level > 200) return;
      depth = Math.max(depth, level + 1);
      parts.push(h("button", {
        class: `flame ${KINDS[node.kind] ?? ""}${is ? (is(node.label) ? " hit" : " miss") : ""}`,
        title: `${format.clean(node.label, 400)}\n${this.cost(node.weight)}, ${format.percent(node.weight / Math.max(1, this.flame.total))} of all`,
        "aria-label": format.clean(nameOf(node), 120),
        style: { left: `${x}px`, top: `${level * LINE}px`, width: `${Math.max(1, w - 1)}px`, padding: w < 30 ? "0" : "" }, onclick: () => click(node),
      }, w > 30 ? format.clean(nameOf(node), 120) : ""));
      let at = x;
      for (const child of node.children) {
        place(child, at, level + 1);
        at += (child.weight / total) * width;
      }
    };
    place(root, 0, 0);
    return h("div", { class: "flame-box", style: { height: `${depth * LINE + 4}px` } }, parts);
  }

  private head(root: FlameNode, ...more: (HTMLElement | null)[]): HTMLElement {
    const is = matcher(chosen.query);
    return h("div", { class: "flame-head" }, h("b", null, format.clean(root.label, 200)), ` ${this.cost(root.weight)}, ${format.percent(root.weight / Math.max(1, this.flame.total))} of all`,
      is ? h("span", { class: "flame-found" }, ` · found: ${format.percent(matched(root, is) / Math.max(1, root.weight))} `) : null, ...more);
  }

  private drawTree(): void {
    const root = this.path[this.path.length - 1] ?? this.tree;
    const zoomed = this.path.length > 0;
    const click = (node: FlameNode): void => this.show(node === root ? this.path.slice(0, -1) : [...this.path, node]);
    this.box.replaceChildren(this.head(root, zoomed ? h("button", { class: "link", onclick: () => this.show(this.path.slice(0, -1)) }, "back out") : null,
      zoomed ? h("button", { class: "link", onclick: () => this.show(this.path, nameOf(root)) }, "callers and callees") : null), this.boxes(root, click));
  }

  /** All calls of one function: its callers, and below them what it calls. */
  private drawAround(): void {
    const { callers, callees } = around(treeOf(this.flame.nodes), this.focus);
    const click = (node: FlameNode): void => this.show(this.path, nameOf(node));
    this.box.replaceChildren(this.head(callees, h("button", { class: "link", onclick: () => this.show(this.path) }, "back")),
      h("h4", { class: "flame-part" }, "Callers"), this.boxes(callers, click), h("h4", { class: "flame-part" }, "Callees"), this.boxes(callees, click));
  }
}

function ask(ctx: Context): Promise<Flame> {
  const { app } = ctx;
  const { range, opening } = app;
  // The one-file page has what the server says without a window.
  const steady = opening && !app.source.isOffline ? { from: opening.steady_from, to: opening.steady_to } : null;
  const span = chosen.scope === "range" ? range : chosen.scope === "steady" ? steady : null;
  return app.source.ask<Flame>("flame", {
    kind: chosen.kind || undefined, thread: chosen.thread || undefined, whole: chosen.scope === "whole" ? 1 : undefined,
    from: span ? Math.max(0, Math.round(span.from)) : undefined, to: span ? Math.round(span.to) : undefined, f: app.report || undefined,
  });
}

function scopeName(ctx: Context, flame: Flame): string {
  const length = format.duration(flame.to - flame.from);
  if (chosen.scope === "range") return `measured range, ${length}`;
  const isSteady = chosen.scope === "steady" && (flame.is_steady || !!ctx.app.opening);
  return isSteady ? `steady steps, ${length}` : `whole run, ${length}`;
}

function threadChoice(ctx: Context, flame: Flame, load: () => void): HTMLElement | null {
  const { app } = ctx;
  if (!chosen.thread && flame.threads.length < 2) return null;
  const titleOf = (key: string): string => format.clean(app.meta.rows[app.rowByKey(key)]?.title ?? key, 60);
  const all = flame.threads.reduce((sum, t) => sum + t[1], 0);
  const select = h("select", { "aria-label": "Thread", onchange: () => { chosen.thread = select.value; load(); } }, h("option", { value: "" }, "all threads"),
    [...flame.threads].sort((a, b) => b[1] - a[1]).map(([key, weight]) => h("option", { value: key, selected: key === chosen.thread }, `${titleOf(key)}  ${format.percent(weight / Math.max(1, all))}`)));
  return select;
}

function barOf(ctx: Context, flame: Flame, load: () => void, redraw: (isNew: boolean) => void): (HTMLElement | null)[] {
  const { app } = ctx;
  const pick = (label: string, isOn: boolean, isOff: boolean, run: () => void): HTMLElement => h("button", { class: isOn ? "on" : "", "aria-pressed": String(isOn), disabled: isOff, onclick: () => { run(); load(); } }, label);
  const scope = (label: string, id: Scope, isOff = false): HTMLElement => pick(label, chosen.scope === id, isOff, () => { chosen.scope = id; });
  const search = h("input", { placeholder: "find function", "aria-label": "Find a function", value: chosen.query, oninput: () => { chosen.query = search.value.trim(); redraw(false); } });
  return [
    h("div", { class: "choices" }, pick(`CPU samples ${format.count(flame.n_native)}`, !chosen.kind, !flame.n_native, () => { chosen.kind = ""; }), pick(`Python samples ${format.count(flame.n_python)}`, chosen.kind === "python", !flame.n_python, () => { chosen.kind = "python"; })),
    h("div", { class: "choices" }, app.opening ? scope("steady steps", "steady") : null, scope("whole run", "whole"), app.source.isOffline ? null : scope("measured range", "range", !app.range)),
    threadChoice(ctx, flame, load), search,
    h("label", { title: "Where the time was spent on top, its callers below" }, h("input", { type: "checkbox", checked: chosen.isInverted, onchange: (e: Event) => { chosen.isInverted = (e.target as HTMLInputElement).checked; redraw(true); } }), "callers below"),
    h("span", { class: "small" }, scopeName(ctx, flame)),
  ];
}

export const flame: Panel = {
  id: "flame",
  place: 110,
  title: "Flame graph",
  follows: ["range", "verdict"],
  render: (ctx: Context) => {
    const { app } = ctx;
    const body = h("div", { class: "panel-body flame-body" });
    const bar = h("div", { class: "panel-bar" });
    // A range that was just measured is what one wants to see; without one there is none.
    if (app.range && !app.source.isOffline) chosen.scope = "range";
    else if (chosen.scope === "range") chosen.scope = "steady";
    if (!app.opening && chosen.scope === "steady") chosen.scope = "whole";
    if (app.rowByKey(chosen.thread) < 0) chosen.thread = "";
    const load = async (): Promise<void> => {
      try {
        let answer = await ask(ctx);
        if (!chosen.kind && !answer.n_native && answer.n_python) {
          chosen.kind = "python";
          answer = await ask(ctx);
        }
        let view = new View(answer, body);
        const redraw = (isNew: boolean): void => {
          if (isNew) view = new View(answer, body);
          view.draw();
        };
        bar.replaceChildren(...barOf(ctx, answer, () => void load(), redraw).filter((x): x is HTMLElement => x !== null));
        if (answer.total) view.draw();
        else {
          body.replaceChildren(answer.n_native + answer.n_python
            ? emptyState("No samples here", "Nothing of this kind was sampled in this time.")
            : emptyState("No samples were recorded", "lull profile samples CPUs and Python by default; imported traces have no samples."));
        }
      } catch (e) {
        body.replaceChildren(failure(e));
      }
    };
    requestAnimationFrame(() => void load());
    return h("div", { class: "panel" }, bar, body);
  },
};
