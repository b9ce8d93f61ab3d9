import type { ViewRow } from "../view";
import { SourceView } from "./source";

export const SOURCE: ViewRow = {
  label: "Source",
  view: SourceView,
  needs: (data) =>
    data.code.length > 0
      ? ""
      : "This profile has no text of its program, and no code of kernels: the files had changed or were gone, or " +
        "bragg run had --no-kernel-code. What Triton's kernels wait for is recorded with: bragg run --sample",
  shows:
    "The files of the program with the time of each line, and the code of a kernel from Python to machine code, side " +
    "by side, with the share of samples at each line.",
  command: "bragg run --sample SCRIPT",
  sketch: [
    ["line", 0, 0, 76, 7],
    ["gpu", 0, 12, 60, 7],
    ["line", 0, 24, 70, 7],
    ["line", 0, 36, 48, 7],
    ["line", 84, 0, 76, 7],
    ["line", 84, 12, 64, 7],
    ["gpu", 84, 24, 52, 7],
    ["gpu", 84, 36, 66, 7],
    ["line", 84, 48, 40, 7],
  ],
  keys: [
    ["J K", "the next and the previous line"],
    ["Tab", "what the line became, in the next text"],
    ["H", "the next hottest line"],
    ["[ ]", "the kernel before and after"],
    ["Esc", "let the line go"],
  ],
};
