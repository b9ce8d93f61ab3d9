import { codeLine, lineText, writtenAt } from "../../data/places";
import type { ProfileData } from "../../data/profile";
import { button, element, ends, pairs } from "../../ui/element";
import { countText, shareText, timeText } from "../../ui/numbers";
import { cutMiddle, partsApart, printable } from "../../ui/text";
import { gapFacts, sliceFacts, sliceLabel } from "./facts";
import { gapCause } from "./idle";
import type { Model } from "./model";
import type { Span } from "./span";
import { idleTexts, sharesText, type Totals } from "./totals";

const MAX_ROWS = 40;
const MAX_NAME = 200;

export interface PanelEvents {
  goTo(slice: number): void;
  find(name: string): void;
  open(view: string, state: Record<string, string>): void;
}

/** Below the lanes: the slice that is chosen, and what ran in the range or in view. */
export class Panel {
  private readonly slice = element("section", "timeline-slice");
  private readonly totals = element("section", "timeline-totals");

  constructor(
    parent: HTMLElement,
    private readonly data: ProfileData,
    private readonly model: Model,
    private readonly colours: string[],
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
    const list = pairs(sliceFacts(this.data, slice));
    const name = element("h2", "", printable(sliceLabel(this.data, slice)));
    name.title = printable(this.data.frames.name[this.data.tree.frame[this.data.slices.node[slice]]]);
    this.slice.replaceChildren(name, list, ...this.source(slice), ...this.links(slice));
  }

  /** What a GPU waited for, where the range is one of its gaps; else how to choose a slice. */
  showGap(gap: Span): void {
    const cause = gapCause(this.data, this.model.busy, gap);
    if (cause === null) {
      this.showSlice(-1);
      return;
    }
    const title = element("h2", "", `GPU idle for ${timeText(gap.end - gap.start)}`);
    const links = [cause.next, cause.launch]
      .filter((slice) => slice >= 0)
      .map((slice, index) => {
        const label = cutMiddle(sliceLabel(this.data, slice), 80);
        return this.link(`${index === 0 ? "→ then ran" : "← launched by"} ${label}`, () => this.on.goTo(slice));
      });
    this.slice.replaceChildren(title, pairs(gapFacts(this.data, this.model, gap)), ...links);
  }

  /** The line of the program that a slice comes from, with its text where the profile has it. */
  private source(slice: number): HTMLElement[] {
    const at = writtenAt(this.data, this.data.slices.node[slice]);
    if (at === null) return [];
    const name = `${at.file.split("/").slice(-2).join("/")}:${at.line}`;
    const made = element("p", "source-line", element("code", "", printable(name)));
    const text = lineText(this.data, at.file, at.line);
    if (text) made.append(" ", element("code", "", printable(text)));
    const code = codeLine(this.data, at.file, at.line);
    if (code !== null) {
      const state = { kernel: code.code.name, line: `python:${code.row}` };
      made.append(
        " ",
        this.link("Source", () => this.on.open("source", state)),
      );
    }
    return [made];
  }

  showTotals(totals: Totals, length_ns: number, isRange: boolean): void {
    const what = `${isRange ? "Range" : "In view"}: ${[timeText(length_ns), ...idleTexts(totals)].join(", ")}`;
    const table = element("table");
    const shown = totals.frames.slice(0, MAX_ROWS);
    const names = partsApart(shown.map(({ frame }) => printable(this.data.frames.label[frame].slice(0, MAX_NAME))));
    for (const [row, { frame, time_ns, count }] of shown.entries()) {
      const colour = element("i", "swatch");
      colour.style.background = this.colours[frame];
      const label = this.data.frames.label[frame].slice(0, MAX_NAME);
      const link = this.link(label, () => this.on.find(label));
      link.classList.add("ends");
      link.setAttribute("aria-label", printable(label));
      link.replaceChildren(...ends(names[row]));
      const name = element("td", "name", colour, link);
      const values = [timeText(time_ns), shareText(time_ns / totals.whole_ns), `×${count}`];
      table.append(element("tr", "", name, ...values.map((value) => element("td", "number", value))));
    }
    const more = totals.frames.length - MAX_ROWS;
    const rest = more > 0 ? [element("p", "faint", `and ${countText(more, "name")} more`)] : [];
    const nothing = totals.ofGpu ? "No GPU work." : "Nothing ran.";
    const about = element("p", "faint", totals.frames.length === 0 ? nothing : sharesText(totals));
    this.totals.replaceChildren(element("h2", "", what), about, table, ...rest);
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
        const label = cutMiddle(sliceLabel(this.data, other), 80);
        const words =
          source === slice ? `→ caused ${label}, ${delay} later` : `← launched by ${label}, ${delay} before`;
        return this.link(words, () => this.on.goTo(other));
      });
  }

  private link(text: string, act: () => void): HTMLElement {
    const made = button(printable(text), act);
    made.classList.add("link");
    return made;
  }
}
