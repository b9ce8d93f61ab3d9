// What rows of a flame graph are called.

import { FrameKind, type ProfileData } from "../../data/profile";
import { placeOf } from "../../data/tree";
import { KIND_NAMES } from "../../ui/colours";
import { printable } from "../../ui/text";
import type { Forest } from "./forest";

/** Whether a row is Python, a kernel, … */
export function kindOfRow(data: ProfileData, forest: Forest, row: number): FrameKind {
  const key = forest.key[row];
  return key < data.frames.kind.length ? data.frames.kind[key] : FrameKind.Python;
}

/** What a row is called. */
export function nameOfRow(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  if (key === data.tree.frame[0]) return "total";
  if (key < data.frames.kind.length) return data.frames.label[key];
  const library = data.libraries[key - data.frames.kind.length];
  if (library.includes(": ")) return `[${library}]`; // with what was called in it
  return `[${library}: ${forest.folded[row]} frame${forest.folded[row] === 1 ? "" : "s"}]`;
}

/** File and line of a row; empty when unknown. */
export function placeOfRow(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  return key < data.frames.kind.length ? placeOf(data, key) : "";
}

/** File and line, or what kind of thing it is. */
export function placeText(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  if (key >= data.frames.kind.length) return "library";
  const kind = KIND_NAMES[data.frames.kind[key] as FrameKind];
  if (key === data.tree.frame[0]) return "";
  const line = data.frames.line[key];
  const file = printable(data.frames.file[key]);
  return file ? `${kind}, ${file}${line ? `:${line}` : ""}` : kind;
}

/** The whole name; of kernels as the program gave it. */
export function wholeName(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  return key < data.frames.kind.length && key !== data.tree.frame[0]
    ? data.frames.name[key]
    : nameOfRow(data, forest, row);
}
