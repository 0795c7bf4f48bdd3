// Making elements. Text only ever becomes text: names in a report may be hostile.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

/** h("div", {class: "x", onclick: f}, "text", child) */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  set(el, props);
  add(el, children);
  return el;
}

/** The same for SVG. */
export function s(tag: string, props?: Props | null, ...children: (Child | Child[])[]): SVGElement {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(el, props);
  add(el, children);
  return el;
}

function set(el: Element, props?: Props | null): void {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style") Object.assign((el as HTMLElement).style, value);
    else if (name.startsWith("on")) el.addEventListener(name.slice(2), value as EventListener);
    else el.setAttribute(name, value === true ? "" : String(value));
  }
}

function add(el: Element, children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    el.append(child instanceof Node ? child : String(child));
  }
}
