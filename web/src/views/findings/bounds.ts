// What the wall time of the steady state went to, as a bar: what the GPU worked on, and what it waited for.

import type { Findings } from "../../data/profile";
import { element } from "../../ui/element";
import { shareText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { meaningOf } from "./meanings";

const LEAST_SHOWN = 0.005;
/** Parts of one colour get paler one after another. */
const N_SHADES = 5;

export function boundsBar(parts: Findings["parts"]): HTMLElement {
  const ordered = [...parts.filter((part) => part.is_gpu), ...parts.filter((part) => !part.is_gpu)];
  const shown = ordered.filter((part) => part.share >= LEAST_SHOWN);
  const bar = element("div", "stacked");
  const legend = element("ul", "legend");
  const used = { gpu: 0, waits: 0 };
  for (const part of shown) {
    const role = part.is_gpu ? "gpu" : "waits";
    const shade = String(Math.min(used[role]++, N_SHADES - 1));
    const name = printable(part.name);
    bar.append(piece(role, shade, part.share, `${name} ${shareText(part.share)}`));
    const words = part.is_gpu ? `GPU: ${name}` : `waits ${name.startsWith("between") ? "" : "for "}${name}`;
    legend.append(entry(role, shade, words, shareText(part.share), meaningOf(part.name)));
  }
  const rest = 1 - shown.reduce((sum, part) => sum + part.share, 0);
  if (rest > 0) bar.append(piece("waits", String(N_SHADES - 1), rest, `other ${shareText(rest)}`));
  if (rest >= LEAST_SHOWN) legend.append(entry("waits", String(N_SHADES - 1), "other", shareText(rest)));
  return element("div", "stack", bar, legend);
}

/** A piece of a bar of all; `role` and `shade` are what its colour means. */
export function piece(role: string, shade: string, share: number, title: string): HTMLElement {
  const made = element("i");
  made.dataset.role = role;
  made.dataset.shade = shade;
  made.style.flexGrow = String(share);
  made.title = title;
  return made;
}

/** What a colour of a bar means; `meaning` explains the name. */
export function entry(role: string, shade: string, name: string, value: string, meaning = ""): HTMLElement {
  const swatch = element("i");
  swatch.dataset.role = role;
  swatch.dataset.shade = shade;
  const made = element("li", "", swatch, `${name} `, element("b", "", value));
  made.title = meaning;
  return made;
}
