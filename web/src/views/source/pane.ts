import type { CodePane, KernelText, Stage } from "../../data/code";
import { heatColour, type Theme } from "../../ui/colours";
import { element } from "../../ui/element";
import { shareText, timeText } from "../../ui/numbers";
import { cut, printable } from "../../ui/text";
import { Heat } from "./heat";
import { entriesOf, mainRow, type Note, noteOf, numberText, placesOf, seen, withoutLocation } from "./rows";
import { tokensOf } from "./tokens";

export const STAGE_NAMES: Record<Stage, string> = {
  python: "Python",
  ttir: "TTIR",
  ttgir: "TTGIR",
  llir: "LLIR",
  ptx: "PTX",
  sass: "SASS",
};

export const LINE_PX = 18;
/** Browsers draw no element that is much higher. */
const MAX_LENGTH = 4000;
const STRIP_PX = 10;

export interface PaneEvents {
  hover(row: number, event: MouseEvent, isHeat: boolean): void;
  leave(): void;
  click(row: number): void;
}

/** One text of a kernel; of long ones only the lines that are seen exist. */
export class Pane {
  readonly root: HTMLElement;
  readonly heat: Heat;
  private readonly entries: Int32Array;
  private readonly places: Int32Array;
  private readonly scroller = element("div", "code-scroll");
  private readonly lines = element("div", "code-lines");
  private readonly strip = element("canvas", "code-strip");
  private readonly made = new Map<number, HTMLElement>();
  private readonly observer = new ResizeObserver(() => {
    this.update();
    this.drawStrip();
  });
  private linked = new Set<number>();
  private own = -1;
  private isPinned = false;

  constructor(
    private readonly kernel: KernelText,
    private readonly pane: CodePane,
    private readonly theme: Theme,
    private readonly hidesLocations: boolean,
    private readonly notes: Note[],
    private readonly on: PaneEvents,
  ) {
    this.heat = new Heat(kernel, pane);
    this.entries = entriesOf(pane, hidesLocations, notes);
    this.places = placesOf(this.entries, pane.lines.length);
    const note = element("span", "note", noteOf(pane, this.heat.most > 0));
    const names = (kernel.times ?? []).map(([name]) => element("i", "heat", name.replace("_time", "")));
    const head = element("header", "", ...names, element("h2", "", STAGE_NAMES[pane.stage]), note);
    this.root = element("section", "code-pane", head, element("div", "code-body", this.scroller, this.strip));
    this.root.dataset.stage = pane.stage;
    if (this.heat.most > 0) this.root.classList.add("has-heat");
    this.root.style.setProperty("--heats", String(this.n_heats));
    const longest = pane.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.lines.style.height = `${this.entries.length * LINE_PX}px`;
    this.lines.style.minWidth = `calc(${Math.min(longest, MAX_LENGTH)}ch + var(--gutter))`;
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute(
      "aria-label",
      `${STAGE_NAMES[pane.stage]} of the ${kernel.times ? "program" : "kernel"}`,
    );
    this.scroller.append(this.lines);
    this.listen();
    this.observer.observe(this.scroller);
  }

  destroy(): void {
    this.observer.disconnect();
    this.root.remove();
  }

  get stage(): Stage {
    return this.pane.stage;
  }

  get length(): number {
    return this.pane.lines.length;
  }

  /** Show which rows belong together; `own` is the one that was pointed at, -1: none here. */
  mark(rows: number[], own: number, isPinned: boolean): void {
    this.linked = new Set(rows);
    this.own = own;
    this.isPinned = isPinned;
    for (const [entry, line] of this.made) this.dress(line, this.entries[entry]);
    this.drawStrip();
  }

  /** Bring the main one of some rows into view, unless one of them is seen. */
  reveal(rows: number[]): void {
    const [first, last] = [this.scroller.scrollTop, this.scroller.scrollTop + this.scroller.clientHeight - LINE_PX];
    const isSeen = rows.some((row) => {
      const y = this.places[row] * LINE_PX;
      return y >= first && y <= last;
    });
    if (!isSeen) this.scrollTo(mainRow(rows));
  }

  scrollTo(row: number): void {
    this.scroller.scrollTop = this.places[row] * LINE_PX - this.scroller.clientHeight / 3;
    this.update();
  }

  focus(): void {
    this.scroller.focus({ preventScroll: true });
  }

  text(row: number): string {
    return this.pane.lines[row];
  }

  number(row: number): string {
    return numberText(this.pane, row);
  }

  private listen(): void {
    this.scroller.addEventListener("scroll", () => this.update(), { passive: true });
    this.lines.addEventListener("mousemove", (event) => {
      const row = this.rowAt(event);
      if (row < 0) this.on.leave();
      else this.on.hover(row, event, (event.target as Element).closest(".heat") !== null);
    });
    this.lines.addEventListener("mouseleave", () => this.on.leave());
    this.lines.addEventListener("click", (event) => {
      const row = this.rowAt(event);
      if (row >= 0 && getSelection()?.isCollapsed !== false) this.on.click(row);
    });
    this.strip.addEventListener("click", (event) => {
      const share = (event.clientY - this.strip.getBoundingClientRect().top) / this.strip.clientHeight;
      this.scroller.scrollTop = share * this.scroller.scrollHeight - this.scroller.clientHeight / 2;
    });
  }

  /** -1: a title, or below the end. */
  private rowAt(event: MouseEvent): number {
    const entry = Math.floor((event.clientY - this.lines.getBoundingClientRect().top) / LINE_PX);
    return this.entries[entry] ?? -1;
  }

  private update(): void {
    const { scrollTop, clientHeight } = this.scroller;
    const [first, last] = seen(scrollTop, clientHeight, LINE_PX, this.entries.length);
    for (const [entry, line] of this.made) {
      if (entry >= first && entry < last) continue;
      line.remove();
      this.made.delete(entry);
    }
    for (let entry = first; entry < last; entry += 1) {
      if (this.made.has(entry)) continue;
      const line = this.entryLine(this.entries[entry]);
      line.style.top = `${entry * LINE_PX}px`;
      this.made.set(entry, line);
      this.lines.append(line);
    }
  }

  private entryLine(row: number): HTMLElement {
    const note = this.notes[-1 - row - this.pane.sections.length];
    if (note !== undefined) {
      const line = element("div", "code-note", printable(note.text));
      line.title = line.textContent;
      return line;
    }
    if (row < 0) {
      const title = printable(this.pane.sections[-1 - row][1]);
      return element("div", "code-title", element("span", "", title));
    }
    const code = element("code");
    const whole = this.hidesLocations ? withoutLocation(this.pane.lines[row]) : this.pane.lines[row];
    for (const { kind, text } of tokensOf(this.pane.stage, whole.slice(0, MAX_LENGTH))) {
      code.append(kind === "plain" ? shown(text) : element("span", `tok-${kind}`, shown(text)));
    }
    const line = element("div", "code-line", ...this.heatCells(row), element("b", "", this.number(row)), code);
    line.dataset.row = String(row);
    this.dress(line, row);
    return line;
  }

  private get n_heats(): number {
    return this.kernel.times?.length || 1;
  }

  private heatCells(row: number): HTMLElement[] {
    const { times } = this.kernel;
    if (times === null) return [this.heatCell(shareText(this.heat.share(row)), this.heat.relative(row))];
    return this.heat
      .times(row)
      .map((time_ns, index) => this.heatCell(timeText(time_ns), time_ns / Math.max(times[index][1], 1)));
  }

  /** Empty where there is no heat. */
  private heatCell(text: string, heat: number): HTMLElement {
    const cell = element("i", "heat");
    if (heat > 0) {
      cell.textContent = text;
      cell.style.setProperty("--share", `${Math.min(heat, 1) * 100}%`);
      cell.style.setProperty("--heat", heatColour(Math.min(heat, 1), this.theme));
    }
    return cell;
  }

  private dress(line: HTMLElement, row: number): void {
    line.classList.toggle("linked", this.linked.has(row) && row >= 0);
    line.classList.toggle("own", row === this.own && row >= 0);
    line.classList.toggle("pinned", this.isPinned && row === this.own && row >= 0);
  }

  /** Beside the scroll bar: where samples are, and which lines are marked. */
  private drawStrip(): void {
    const height = this.scroller.clientHeight;
    if (height === 0) return;
    this.strip.width = STRIP_PX;
    this.strip.height = height;
    const context = this.strip.getContext("2d")!;
    const y = (row: number): number => (this.places[row] / Math.max(this.entries.length, 1)) * height;
    const size = Math.max(height / Math.max(this.entries.length, 1), 2);
    for (const [row] of this.pane.samples) {
      context.fillStyle = heatColour(this.heat.relative(row), this.theme);
      context.fillRect(0, y(row), STRIP_PX / 2, size);
    }
    context.fillStyle = this.theme === "light" ? "#0072b2" : "#56b4e9";
    for (const row of this.linked) context.fillRect(STRIP_PX / 2, y(row), STRIP_PX / 2, size);
  }

  /** A title for assistants, of a row. */
  summary(row: number): string {
    return `${STAGE_NAMES[this.stage]} ${this.number(row)}: ${cut(this.text(row).trim(), 80)}`;
  }
}

/** Tabs stay, everything else that is not seen is shown. */
function shown(text: string): string {
  return text.split("\t").map(printable).join("\t");
}
