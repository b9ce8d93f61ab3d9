import { numbersApart, type Parts, printable } from "./text";

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

/** A button with a text. */
export function button(text: string, onClick: () => void): HTMLButtonElement {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

/** Names and their values. */
export function pairs(rows: [name: string, value: string][], className = ""): HTMLElement {
  const made = element("dl", className);
  for (const [name, value] of rows) made.append(element("dt", "", name), element("dd", "", printable(value)));
  return made;
}

/** The parts of a name for `.ends`, which shows as much of them as there is room for. */
export function ends([head, kept, rest]: Parts): HTMLElement[] {
  return [element("span", "head", head), element("span", "kept", kept), element("span", "rest", rest)];
}

/** A sentence whose numbers stay on one line with their units. */
export function sentence(text: string): (HTMLElement | string)[] {
  return numbersApart(printable(text)).map((part, at) => (at % 2 ? element("span", "whole", part) : part));
}
