// Lines of source files that findings and frames name.

import type { KernelText } from "./code";
import type { ProfileData } from "./profile";

/** The text of a line, without the blanks around it; empty: the profile does not have it. */
export function lineText(data: ProfileData, file: string, line: number): string {
  const text = line > 0 ? data.sources[file] : undefined;
  return text?.split("\n")[line - 1]?.trim() ?? "";
}

/** The kernel, else the file of the program, whose Python pane has a line, and its row there; null: none has. */
export function codeLine(data: ProfileData, file: string, line: number): { code: KernelText; row: number } | null {
  const name = file.slice(file.lastIndexOf("/") + 1);
  if (!name || line <= 0) return null;
  for (const code of data.code) {
    const pane = code.panes.find((one) => one.stage === "python");
    if (pane === undefined) continue;
    const isOfFile = (row: number) =>
      pane.sections
        .filter(([first]) => first <= row)
        .at(-1)?.[1]
        .includes(name) ?? false;
    const row = pane.numbers.findIndex((number, index) => number === line && isOfFile(index));
    if (row >= 0) return { code, row };
  }
  return null;
}

/** Where the nearest frame at or above a node that has a line is written; null: none has. */
export function writtenAt(data: ProfileData, node: number): { file: string; line: number } | null {
  const { tree, frames } = data;
  for (let at = node; at > 0; at = tree.parent[at]) {
    const frame = tree.frame[at];
    // A reader cannot change what runs in libraries.
    if (frames.line[frame] > 0 && frames.file[frame] && frames.library[frame] < 0) {
      return { file: frames.file[frame], line: frames.line[frame] };
    }
  }
  return null;
}
