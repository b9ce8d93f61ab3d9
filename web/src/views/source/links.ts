// Which lines of one text of a kernel became which lines of another.

import type { CodePane, KernelText, Stage } from "../../data/code";

/** A line: its text and its row there. */
export interface Line {
  stage: Stage;
  row: number;
}

interface Index {
  pane: CodePane;
  /** Rows by key of the place that they come from. */
  byKey: Map<number, number[]>;
  /** Rows by row of the Python pane. */
  bySource: Map<number, number[]>;
}

export class CodeLinks {
  private readonly indices = new Map<Stage, Index>();
  /** Rows of machine code by row of the PTX. */
  private readonly sassOfPtx = new Map<number, number[]>();

  constructor(private readonly kernel: KernelText) {
    for (const pane of kernel.panes) this.indices.set(pane.stage, this.indexOf(pane));
    for (const [row, line] of (this.pane("sass")?.ptx ?? []).entries()) if (line) add(this.sassOfPtx, line - 1, row);
  }

  /** Rows of another text that belong to a line: those of the same place, as exactly as both texts know it. */
  rows({ stage, row }: Line, other: Stage): number[] {
    const index = this.indices.get(other);
    const own = this.pane(stage);
    if (index === undefined || own === undefined || stage === other) return [];
    if (stage === "python") return index.bySource.get(row) ?? [];
    if (stage === "sass" && other === "ptx") return own.ptx[row] ? [own.ptx[row] - 1] : [];
    if (stage === "ptx" && other === "sass" && this.sassOfPtx.size > 0) return this.sassOfPtx.get(row) ?? [];
    const place = this.kernel.places[own.place[row]];
    if (place === undefined) return [];
    if (other === "python") return place.source;
    const key = place.keys.find((one) => index.byKey.has(one));
    return key === undefined ? [] : (index.byKey.get(key) ?? []);
  }

  /** The line itself, and what belongs to it in every other text that has any. */
  all(line: Line): Map<Stage, number[]> {
    const found = new Map<Stage, number[]>([[line.stage, [line.row]]]);
    for (const other of this.indices.keys()) {
      const rows = this.rows(line, other);
      if (rows.length > 0) found.set(other, rows);
    }
    return found;
  }

  private pane(stage: Stage): CodePane | undefined {
    return this.indices.get(stage)?.pane;
  }

  private indexOf(pane: CodePane): Index {
    const index: Index = { pane, byKey: new Map(), bySource: new Map() };
    for (const [row, number] of pane.place.entries()) {
      const place = this.kernel.places[number];
      if (place === undefined) continue;
      for (const key of place.keys) add(index.byKey, key, row);
      for (const source of new Set(place.source)) add(index.bySource, source, row);
    }
    return index;
  }
}

function add(rows: Map<number, number[]>, key: number, row: number): void {
  const own = rows.get(key);
  if (own === undefined) rows.set(key, [row]);
  else own.push(row);
}
