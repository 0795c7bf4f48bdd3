// The drawer below the rows: tabs and the panel of one of them.

import type { App } from "./app";
import { h } from "./dom";
import { PANELS } from "./panels";
import { type Context, type Panel, failure } from "./panels/panel";
import { roving, stopAt } from "./roving";

/** Panels in the order of their tabs: what the recording has nothing for comes last. */
export function tabsOf(app: App): Panel[] {
  const isAbsent = (p: Panel): boolean => p.isAbsent?.(app) ?? false;
  return [...PANELS.filter((p) => !isAbsent(p)), ...PANELS.filter(isAbsent)];
}

export class Drawer {
  readonly el: HTMLElement;
  private readonly tabs = h("div", { class: "tab-list", role: "tablist", "aria-label": "Panels" });
  private readonly hide = h("span");
  private readonly body = h("div", { class: "drawer-body", id: "drawer-body", role: "tabpanel", tabindex: 0 });
  private shown = "";
  private turn = 0;
  isBusy = false;

  constructor(private readonly ctx: Context) {
    const { app } = ctx;
    const grip = h("div", { class: "grip", title: "Drag to resize" });
    const toggle = (): void => { app.isDrawerOpen = !app.isDrawerOpen; app.changed("drawer"); };
    this.el = h("section", { class: "drawer", "aria-label": "Details" }, grip,
      h("div", { class: "tabs" }, this.tabs, h("button", { class: "hide", onclick: toggle }, h("kbd", null, "Q"), this.hide)), this.body);
    this.tabs.append(...tabsOf(app).map((p) => h("button", {
      role: "tab", id: `tab-${p.id}`, "data-tab": p.id, "aria-controls": "drawer-body", class: p.isAbsent?.(app) ? "absent" : "",
      title: p.isAbsent?.(app) ? "Not in this recording" : undefined, onclick: () => app.openTab(p.id),
    }, p.title)));
    roving(this.tabs, "[data-tab]", ["ArrowLeft", "ArrowRight"], () => false);
    grip.addEventListener("pointerdown", (e) => this.resize(e, grip));
    app.on("drawer", () => this.update());
    app.on("selection", () => this.follow("selection"));
    app.on("range", () => this.follow("range"));
    app.on("verdict", () => this.follow("verdict"));
    app.on("listed", () => this.follow("listed"));
    app.on("theme", () => void this.render());
    this.update();
  }

  private panel(): Panel {
    return PANELS.find((p) => p.id === this.ctx.app.tab) ?? PANELS[0];
  }

  private follow(part: "selection" | "range" | "verdict" | "listed"): void {
    if (this.ctx.app.isDrawerOpen && this.panel().follows?.includes(part)) void this.render();
  }

  private update(): void {
    const { app } = this.ctx;
    const panel = this.panel();
    this.el.classList.toggle("closed", !app.isDrawerOpen);
    this.el.classList.toggle("tall", panel.isTall === true && app.meta.reports.length > 1);
    for (const tab of this.tabs.querySelectorAll<HTMLElement>("[data-tab]")) {
      const isOn = app.isDrawerOpen && tab.dataset.tab === panel.id;
      if (tab.dataset.tab === panel.id) stopAt(this.tabs, "[data-tab]", tab);
      tab.classList.toggle("on", isOn);
      tab.setAttribute("aria-selected", String(isOn));
    }
    this.body.setAttribute("aria-labelledby", `tab-${panel.id}`);
    this.hide.textContent = app.isDrawerOpen ? " hide" : " show";
    if (app.isDrawerOpen && this.shown !== panel.id) void this.render();
    if (!app.isDrawerOpen) this.shown = "";
  }

  private async render(): Promise<void> {
    const panel = this.panel();
    if (!this.ctx.app.isDrawerOpen) return;
    const turn = ++this.turn;
    this.shown = panel.id;
    this.isBusy = true;
    let content: HTMLElement;
    try {
      const made = panel.render(this.ctx);
      if (made instanceof Promise && !this.body.childElementCount) this.body.replaceChildren(h("div", { class: "loading" }, "…"));
      content = await made;
    } catch (e) {
      content = failure(e);
    }
    // Another tab may have been opened meanwhile.
    if (turn !== this.turn) return;
    this.isBusy = false;
    this.body.replaceChildren(content);
    this.body.scrollTop = 0;
  }

  private resize(e: PointerEvent, grip: HTMLElement): void {
    const start = e.clientY;
    const height = this.body.offsetHeight;
    grip.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent): void => {
      const next = Math.max(80, Math.min(window.innerHeight - 260, height + start - m.clientY));
      this.body.style.height = `${next}px`;
    };
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
  }
}
