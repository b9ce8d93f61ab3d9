import type { ViewRow } from "../view";
import { SourceView } from "./source";

export const SOURCE: ViewRow = {
  label: "Source",
  view: SourceView,
  needs: (data) =>
    data.code.length > 0
      ? ""
      : "This profile has no code of kernels. bragg run keeps that of Triton's kernels, and where their warps wait with: " +
        "bragg run --sample",
  keys: [
    ["J K", "the next and the previous line"],
    ["Tab", "what the line became, in the next text"],
    ["H", "the next hottest line"],
    ["[ ]", "the kernel before and after"],
    ["Esc", "let the line go"],
  ],
};
