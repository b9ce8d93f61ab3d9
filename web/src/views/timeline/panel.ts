import type { ProfileData } from "../../data/profile";
import { element } from "../../ui/element";
import { countText, shareText, timeText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { labelOf, sliceFacts } from "./facts";
import type { Model } from "./model";
import { idleTexts, type Totals } from "./totals";

const MAX_ROWS = 40;
const MAX_NAME = 200;

export interface PanelEvents {
  goTo(slice: number): void;
  find(name: string): void;
}

/** Below the lanes: the slice that is chosen, and what ran in the range or in view. */
export class Panel {
  private readonly slice = element("section", "timeline-slice");
  private readonly totals = element("section", "timeline-totals");

  constructor(
    parent: HTMLElement,
    private readonly data: ProfileData,
    private readonly model: Model,
    private readonly on: PanelEvents,
  ) {
    this.slice.setAttribute("aria-live", "polite");
    parent.append(element("div", "timeline-panel", this.slice, this.totals));
  }

  showSlice(slice: number): void {
    if (slice < 0) {
      const hint = "Click a slice. Drag the ruler, or drag with Shift, for the totals of a range.";
      this.slice.replaceChildren(element("h2", "", "Slice"), element("p", "faint", hint));
      return;
    }
    const list = element("dl");
    for (const [name, value] of sliceFacts(this.data, slice)) {
      list.append(element("dt", "", name), element("dd", "", printable(value)));
    }
    const name = element("h2", "", printable(labelOf(this.data, slice)));
    name.title = printable(this.data.frames.name[this.data.tree.frame[this.data.slices.node[slice]]]);
    this.slice.replaceChildren(name, list, ...this.links(slice));
  }

  showTotals(totals: Totals, length_ns: number, isRange: boolean): void {
    const what = `${isRange ? "Range" : "In view"}: ${[timeText(length_ns), ...idleTexts(totals)].join(", ")}`;
    const table = element("table");
    for (const { frame, time_ns, count } of totals.frames.slice(0, MAX_ROWS)) {
      const colour = element("i", "swatch");
      colour.style.background = this.model.colours[frame];
      const label = this.data.frames.label[frame].slice(0, MAX_NAME);
      const name = element(
        "td",
        "name",
        colour,
        this.link(label, () => this.on.find(label)),
      );
      const values = [timeText(time_ns), shareText(time_ns / totals.time_ns), `×${count}`];
      table.append(element("tr", "", name, ...values.map((value) => element("td", "number", value))));
    }
    const more = totals.frames.length - MAX_ROWS;
    const rest = more > 0 ? [element("p", "faint", `and ${countText(more, "name")} more`)] : [];
    const empty =
      totals.frames.length === 0 ? [element("p", "faint", totals.ofGpu ? "No GPU work." : "Nothing ran.")] : [];
    this.totals.replaceChildren(element("h2", "", what), ...empty, table, ...rest);
  }

  /** Buttons to what caused a slice, and to what it caused. */
  private links(slice: number): HTMLElement[] {
    const { start } = this.data.slices;
    return this.model.flows
      .of(slice)
      .slice(0, 4)
      .map(([source, target]) => {
        const other = source === slice ? target : source;
        const delay = timeText(start[target] - start[source]);
        const label = labelOf(this.data, other).slice(0, 80);
        const words =
          source === slice ? `→ caused ${label}, ${delay} later` : `← launched by ${label}, ${delay} before`;
        return this.link(words, () => this.on.goTo(other));
      });
  }

  private link(text: string, act: () => void): HTMLElement {
    const button = element("button", "link", printable(text));
    button.type = "button";
    button.addEventListener("click", act);
    return button;
  }
}
