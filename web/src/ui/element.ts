/** An element with a class and children; strings become text nodes, so nothing in them is HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Letters that stay of the end of a name. */
const TAIL = 14;

/** A name in two parts for `.ends`: where there is no room the first gives way, and the end, which tells names apart, stays. */
export function ends(name: string): HTMLElement[] {
  const tail = Math.min(Math.floor(name.length / 2), TAIL);
  const at = name.length - tail;
  return [element("span", "head", name.slice(0, at)), element("span", "tail", name.slice(at))];
}
