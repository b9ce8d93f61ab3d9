// Controls above a view.

import { button, element } from "./element";

/** Buttons of which one is pressed. */
export class Choice {
  readonly element = element("span", "group");
  private readonly buttons = new Map<string, HTMLButtonElement>();

  /** `options`: value and label. */
  constructor(label: string, options: [string, string][], onChoose: (value: string) => void) {
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", label);
    for (const [value, text] of options) {
      const made = button(text, () => onChoose(value));
      this.buttons.set(value, made);
      this.element.append(made);
    }
  }

  set value(chosen: string) {
    for (const [value, button] of this.buttons) button.setAttribute("aria-pressed", String(value === chosen));
  }
}

/** A list to choose from, with its label. */
export function select(
  label: string,
  options: [string, string][],
  onChoose: (value: string) => void,
): [HTMLLabelElement, HTMLSelectElement] {
  const control = element("select");
  for (const [value, text] of options) control.add(new Option(text, value));
  control.onchange = () => onChoose(control.value);
  return [element("label", "", label, control), control];
}

/** A box to tick, with its label. */
export function tick(label: string, onTick: (isOn: boolean) => void): [HTMLLabelElement, HTMLInputElement] {
  const control = element("input");
  control.type = "checkbox";
  control.onchange = () => onTick(control.checked);
  return [element("label", "", control, label), control];
}

/** A colour and what it means. */
export function legendItem(colour: string, text: string): HTMLElement {
  const box = element("i");
  box.style.background = colour;
  return element("span", "", box, text);
}

/** A field for what is searched; tells every change. Escape empties it. */
export function searchField(placeholder: string, onSearch: (query: string) => void): HTMLInputElement {
  const field = element("input");
  field.type = "search";
  field.placeholder = placeholder;
  field.setAttribute("aria-label", placeholder);
  field.spellcheck = false;
  field.oninput = () => onSearch(field.value);
  field.onkeydown = (event) => {
    if (event.key !== "Escape") return;
    if (field.value) {
      field.value = "";
      onSearch("");
    } else field.blur();
    event.stopPropagation();
  };
  return field;
}
