// Lists that are one stop of the Tab key: the arrow keys move inside of them, as in tabs and trees of other programs.

const isShown = (el: HTMLElement): boolean => el.offsetParent !== null;

/**
 * Make the elements that match `items` inside `box` one stop. Arrows `back` and `forth`, Home and End move the focus;
 * `act` is told of other keys and says whether it used them. Keys that were used do not reach the rest of the page.
 */
export function roving(box: HTMLElement, items: string, [back, forth]: [string, string], act: (el: HTMLElement, key: string) => boolean): void {
  box.addEventListener("keydown", (e) => {
    const at = (e.target as HTMLElement).closest<HTMLElement>(items);
    if (!at || e.target !== at || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = [...box.querySelectorAll<HTMLElement>(items)].filter(isShown);
    const ix = all.indexOf(at);
    const next = { [back]: ix - 1, [forth]: ix + 1, Home: 0, End: all.length - 1 }[e.key];
    if (next === undefined ? !act(at, e.key) : false) return;
    e.preventDefault();
    e.stopPropagation();
    if (next !== undefined) all[Math.min(all.length - 1, Math.max(0, next))]?.focus();
  });
  box.addEventListener("focusin", (e) => {
    const at = (e.target as HTMLElement).closest<HTMLElement>(items);
    if (at) stopAt(box, items, at);
  });
}

/** Let the Tab key come to this one. */
export function stopAt(box: HTMLElement, items: string, at: HTMLElement | null): void {
  for (const el of box.querySelectorAll<HTMLElement>(items)) el.tabIndex = el === at ? 0 : -1;
}
