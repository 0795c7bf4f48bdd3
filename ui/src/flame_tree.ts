// Trees of call paths: as the server gives them, with the callees on top, and around one function.

export interface FlameNode {
  label: string; // function, two blanks, place
  weight: number;
  kind: number;
  children: FlameNode[];
}

/** [index of the parent or -1, label, weight, kind], parents first. */
export type FlatNode = [number, string, number, number];

export const nameOf = (node: FlameNode): string => node.label.split("  ")[0];

const byWeight = (a: FlameNode, b: FlameNode): number => b.weight - a.weight;

function sorted(node: FlameNode): FlameNode {
  node.children.sort(byWeight).forEach(sorted);
  return node;
}

export function treeOf(flat: FlatNode[]): FlameNode {
  const nodes = flat.map(([, label, weight, kind]): FlameNode => ({ label, weight, kind, children: [] }));
  flat.forEach(([parent], i) => {
    if (parent >= 0) nodes[parent].children.push(nodes[i]);
  });
  return sorted(nodes[0]);
}

/** What it weighs without its callees. */
export const selfOf = (node: FlameNode): number => node.weight - node.children.reduce((sum, c) => sum + c.weight, 0);

/** Add a path below `to`; nodes of one name are one. */
function addPath(to: FlameNode, path: FlameNode[], weight: number): void {
  let at = to;
  for (const node of path) {
    let child = at.children.find((c) => nameOf(c) === nameOf(node));
    if (!child) {
      child = { label: node.label, weight: 0, kind: node.kind, children: [] };
      at.children.push(child);
    }
    child.weight += weight;
    at = child;
  }
}

/** Where the time itself was spent first, its callers below it. */
export function invert(root: FlameNode): FlameNode {
  const out: FlameNode = { label: root.label, weight: root.weight, kind: 0, children: [] };
  const walk = (node: FlameNode, path: FlameNode[]): void => {
    const here = node === root ? path : [node, ...path];
    const self = selfOf(node);
    if (self > 0 && here.length) addPath(out, here, self);
    for (const child of node.children) walk(child, here);
  };
  walk(root, []);
  return sorted(out);
}

function merge(to: FlameNode, from: FlameNode): void {
  for (const child of from.children) {
    let same = to.children.find((c) => nameOf(c) === nameOf(child));
    if (!same) {
      same = { label: child.label, weight: 0, kind: child.kind, children: [] };
      to.children.push(same);
    }
    same.weight += child.weight;
    merge(same, child);
  }
}

/** All calls of a function: who called it, and what it called. Of calls inside calls of itself the outermost counts. */
export function around(root: FlameNode, name: string): { callers: FlameNode; callees: FlameNode } {
  const make = (): FlameNode => ({ label: name, weight: 0, kind: 0, children: [] });
  const [callers, callees] = [make(), make()];
  const walk = (node: FlameNode, path: FlameNode[]): void => {
    if (node !== root && nameOf(node) === name) {
      for (const to of [callers, callees]) [to.weight, to.kind, to.label] = [to.weight + node.weight, node.kind, node.label];
      addPath(callers, path, node.weight);
      merge(callees, node);
      return;
    }
    for (const child of node.children) walk(child, node === root ? [] : [node, ...path]);
  };
  walk(root, []);
  return { callers: sorted(callers), callees: sorted(callees) };
}

/** What the paths weigh that have a function like this. */
export function matched(node: FlameNode, is: (label: string) => boolean): number {
  return is(node.label) ? node.weight : node.children.reduce((sum, c) => sum + matched(c, is), 0);
}
