// A menu at the pointer, as a right click opens it.

import { h } from "./dom";
import { roving } from "./roving";

let open: (() => void) | null = null;

/** Show it; a click, Enter or Escape closes it. */
export function menu(x: number, y: number, items: [string, () => void][]): void {
  open?.();
  const before = document.activeElement as HTMLElement | null;
  const box = h("div", { class: "menu", role: "menu" }, items.map(([text, run]) => h("button", {
    role: "menuitem", tabindex: -1,
    onclick: () => {
      close();
      run();
    },
  }, text)));
  const outside = (e: Event): void => { if (!box.contains(e.target as Node)) close(); };
  const close = (): void => {
    open = null;
    window.removeEventListener("pointerdown", outside, true);
    box.remove();
    before?.focus({ preventScroll: true });
  };
  open = close;
  roving(box, "[role=menuitem]", ["ArrowUp", "ArrowDown"], (el, key) => {
    if (key === "Escape" || key === "Tab") close();
    else if (key === "Enter" || key === " ") el.click();
    return true;
  });
  window.addEventListener("pointerdown", outside, true);
  document.body.append(box);
  box.style.left = `${Math.max(0, Math.min(x, window.innerWidth - box.offsetWidth - 4))}px`;
  box.style.top = `${Math.max(0, Math.min(y, window.innerHeight - box.offsetHeight - 4))}px`;
  box.querySelector("button")?.focus();
}
