// Samples of lines: how hot each is, and what its warps waited for.

import type { CodePane, KernelText, LineSamples } from "../../data/code";

export class Heat {
  private readonly byRow: Map<number, LineSamples>;
  /** Samples of the hottest line. */
  readonly most: number;

  constructor(
    private readonly kernel: KernelText,
    pane: CodePane,
  ) {
    this.byRow = new Map(pane.samples.map((line) => [line[0], line]));
    this.most = pane.samples.reduce((most, line) => Math.max(most, line[1]), 0);
  }

  count(row: number): number {
    return this.byRow.get(row)?.[1] ?? 0;
  }

  /** Of all samples of the kernel. */
  share(row: number): number {
    return this.kernel.samples > 0 ? this.count(row) / this.kernel.samples : 0;
  }

  /** Compared with the hottest line. */
  relative(row: number): number {
    return this.most > 0 ? this.count(row) / this.most : 0;
  }

  /** Why warps were at a line: name, meaning, and share of its samples; most first. */
  reasons(row: number): { name: string; group: string; meaning: string; share: number }[] {
    const [, count, byReason] = this.byRow.get(row) ?? [row, 0, []];
    return byReason
      .map(([reason, samples]) => {
        const [name, group, meaning] = this.kernel.reasons[reason];
        return { name, group, meaning, share: samples / count };
      })
      .sort((a, b) => b.share - a.share);
  }

  /** The line of the source that makes what warps waited for; undefined: it is not known. */
  waitsFor(row: number): number | undefined {
    return this.byRow.get(row)?.[3];
  }

  /** What a line took, by each of the kernel's times; 0: nothing. */
  times(row: number): number[] {
    const own = new Map(this.byRow.get(row)?.[2]);
    return (this.kernel.times ?? []).map((_, time) => own.get(time) ?? 0);
  }

  /** Rows with samples, the hottest first. */
  hottest(): number[] {
    return [...this.byRow.values()].sort((a, b) => b[1] - a[1]).map(([row]) => row);
  }
}
