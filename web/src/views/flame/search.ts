// Which frames a search means, and how much of the whole they took.

import { FrameKind, type ProfileData } from "../../data/profile";
import { tester } from "../../ui/search";
import type { Forest } from "./forest";

export interface Match {
  /** By row. */
  isMatch: Uint8Array;
  count: number;
  /** Of the whole, 0 to 1: matches below matches count once. */
  share: number;
}

/** By key (frames, then libraries) whether a search means it. */
function matchingKeys(data: ProfileData, query: string): Uint8Array {
  const { name, label, file, kind } = data.frames;
  const means = tester(query);
  const ofFrames = name.map((text, frame) => {
    if (kind[frame] === FrameKind.Root) return 0;
    return means(text) || means(label[frame]) || means(file[frame]) ? 1 : 0;
  });
  return Uint8Array.from([...ofFrames, ...data.libraries.map((text) => (means(text) ? 1 : 0))]);
}

export function search(data: ProfileData, forest: Forest, query: string): Match {
  const isMatch = new Uint8Array(forest.key.length);
  if (!query) return { isMatch, count: 0, share: 0 };
  const keys = matchingKeys(data, query);
  const isBelow = new Uint8Array(forest.key.length);
  let value = 0;
  let count = 0;
  for (let row = 0; row < isMatch.length; row++) {
    const above = forest.parent[row];
    isBelow[row] = above >= 0 && (isBelow[above] || isMatch[above]) ? 1 : 0;
    isMatch[row] = keys[forest.key[row]];
    count += isMatch[row];
    if (isMatch[row] && !isBelow[row]) value += forest.value[row];
  }
  return { isMatch, count, share: forest.value[0] ? Math.min(value / forest.value[0], 1) : 0 };
}
