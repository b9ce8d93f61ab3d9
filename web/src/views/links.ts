// Where else a call path is shown.

import { FrameKind, type ProfileData } from "../data/profile";

/** What a button says, and the view that it opens with a node. */
export type Link = [label: string, view: string];

const KINDS_OF_TABLE: FrameKind[] = [FrameKind.Kernel, FrameKind.Memory];

/** The views that have something to show of a node, except those in `without`. */
export function linksOf(data: ProfileData, node: number, without: string[]): Link[] {
  const frame = data.tree.frame[node];
  const name = data.frames.name[frame];
  const isInTable = KINDS_OF_TABLE.includes(data.frames.kind[frame]) && data.kernels.length > 0;
  const links: [boolean, Link][] = [
    [true, ["Flame", "flame"]],
    [isInTable, ["Kernels", "kernels"]],
    [node > 0 && data.slices.node.length > 0, ["Timeline", "timeline"]],
    [data.code.some((code) => code.name === name || isLineOf(data, frame, code.name)), ["Source", "source"]],
    [data.roofline?.points.some((point) => point.name === name) ?? false, ["Roofline", "roofline"]],
  ];
  return links.filter(([isShown, [, view]]) => isShown && !without.includes(view)).map(([, link]) => link);
}

function isLineOf({ frames }: ProfileData, frame: number, file: string): boolean {
  return frames.kind[frame] === FrameKind.Python && frames.file[frame] === file;
}
