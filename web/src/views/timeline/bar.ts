import { button, element } from "../../ui/element";

/** Typing rests for so long before it is searched. */
const SEARCH_MS = 150;

export interface BarEvents {
  find(text: string): void;
  nextFound(step: 1 | -1): void;
}

/** Above the lanes: search, what it found, and buttons. */
export class Bar {
  readonly root: HTMLElement;
  private readonly search = element("input");
  private readonly count = element("output", "note");
  private timer = 0;

  constructor(
    private readonly on: BarEvents,
    buttons: [label: string, title: string, act: () => void][],
  ) {
    this.search.type = "search";
    this.search.placeholder = "Search slices, or /expression/";
    this.search.setAttribute("aria-label", "Search slices");
    this.search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.find(), SEARCH_MS);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        if (this.timer) this.find();
        on.nextFound(event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") this.search.blur();
    });
    this.root = element("div", "tools", this.search, this.count, element("span", "space"), ...buttons.map(titled));
  }

  destroy(): void {
    clearTimeout(this.timer);
  }

  focus(): void {
    this.search.focus();
  }

  /** Show what is searched for, and what was found. */
  show(text: string, found: string): void {
    if (this.search.value.trim() !== text.trim()) this.search.value = text;
    this.count.textContent = found;
  }

  private find(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.on.find(this.search.value);
  }
}

function titled([label, title, act]: [string, string, () => void]): HTMLElement {
  const made = button(label, act);
  made.title = title;
  return made;
}
