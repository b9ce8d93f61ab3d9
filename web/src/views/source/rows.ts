// What a pane shows below each other: lines, and before each part its title.

import type { CodePane, KernelText, Stage } from "../../data/code";
import type { Finding } from "../../data/profile";
import { countText } from "../../ui/numbers";

/** Texts that keep only a place of the source by line, in a notation of their own. */
const BY_PLACE: Stage[] = ["ttir", "ttgir", "llir"];

/** How long the text is, and, of texts that keep only a place of the source by line, what samples of a line are. */
export function noteOf(pane: CodePane, hasSamples: boolean): string {
  const length = countText(pane.lines.length, pane.stage === "sass" ? "instruction" : "line");
  return hasSamples && BY_PLACE.includes(pane.stage)
    ? `${length}, each with all samples of its place in the source`
    : length;
}

/** Lines of MLIR and LLVM that do nothing but name places. */
const LOCATION_LINE = /^#loc\d* = |^!\d+ = (?:distinct )?!DI|^!llvm\.dbg/;
/** The place of an operation or of an argument. */
const LOCATION = /,? !dbg !\d+| loc\((?:#loc\d*|unknown|"[^"]*"(?:\(#loc\d*\)|:\d+:\d+)?)\)/g;

/** Whether a text names the places that its operations come from. */
export function hasLocations(pane: CodePane): boolean {
  return BY_PLACE.includes(pane.stage) && pane.lines.some((line) => line.includes("loc(") || line.includes("!dbg"));
}

/** A line without the place that it comes from. */
export function withoutLocation(line: string): string {
  return line.replace(LOCATION, "");
}

/** What stands below a line: a finding about it. */
export interface Note {
  row: number;
  text: string;
}

/** The findings about lines of the source, by row; of a kernel not those of others that share its lines. */
export function notesOf(pane: CodePane, findings: Finding[], { name, times }: KernelText): Note[] {
  const own = findings.filter((found) => (times ? found.isWorth : !found.kernel || found.kernel === name));
  const notes: Note[] = [];
  const starts = [...pane.sections.map(([row]) => row), pane.lines.length];
  for (const [section, [begin, , file]] of pane.sections.entries()) {
    for (let row = begin; row < starts[section + 1]; row += 1) {
      for (const found of own) {
        if (found.file !== file || found.line !== pane.numbers[row]) continue;
        const saves = times && found.gain?.wall_ns ? `saves ${found.gainText}  ` : "";
        notes.push({ row, text: `^ ${saves}${found.rule}: ${found.message}` });
      }
    }
  }
  return notes;
}

/** Entries of a pane: a row of its lines, or -1 - the number of a section's title, or of a note behind all titles. */
export function entriesOf(pane: CodePane, hidesLocations = false, notes: Note[] = []): Int32Array {
  const entries = new Int32Array(pane.lines.length + pane.sections.length + notes.length);
  let at = 0;
  let section = 0;
  for (let row = 0; row < pane.lines.length; row += 1) {
    while (section < pane.sections.length && pane.sections[section][0] <= row) {
      entries[at] = -1 - section;
      at += 1;
      section += 1;
    }
    if (hidesLocations && LOCATION_LINE.test(pane.lines[row])) continue;
    entries[at] = row;
    at += 1;
    for (const [number, note] of notes.entries()) {
      if (note.row !== row) continue;
      entries[at] = -1 - pane.sections.length - number;
      at += 1;
    }
  }
  return entries.subarray(0, at);
}

/** Where each row stands among the entries; of those that are hidden the next one that is not. */
export function placesOf(entries: Int32Array, n_rows: number): Int32Array {
  const places = new Int32Array(n_rows).fill(-1);
  for (let entry = 0; entry < entries.length; entry += 1) if (entries[entry] >= 0) places[entries[entry]] = entry;
  for (let row = n_rows - 1, next = Math.max(entries.length - 1, 0); row >= 0; row -= 1) {
    if (places[row] < 0) places[row] = next;
    else next = places[row];
  }
  return places;
}

/** The entries that are seen, with some around them: scrolling by less makes nothing anew. */
export function seen(top_px: number, height_px: number, line_px: number, count: number, around = 12): [number, number] {
  const first = Math.max(Math.floor(top_px / line_px) - around, 0);
  return [first, Math.min(Math.ceil((top_px + height_px) / line_px) + around, count)];
}

/** Of several rows the one to bring into view: the first of the largest group of rows that stand near each other. */
export function mainRow(rows: number[], near = 12): number {
  let best = rows[0];
  let most = 0;
  let first = 0;
  const ordered = [...rows].sort((a, b) => a - b);
  for (let index = 0; index < ordered.length; index += 1) {
    if (index > 0 && ordered[index] - ordered[index - 1] > near) first = index;
    if (index - first + 1 > most) {
      most = index - first + 1;
      best = ordered[first];
    }
  }
  return best;
}

/** The number that stands beside a line. */
export function numberText(pane: CodePane, row: number): string {
  return pane.stage === "sass" ? pane.numbers[row].toString(16).padStart(4, "0") : String(pane.numbers[row]);
}
