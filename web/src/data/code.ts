// The code of kernels at each stage of their compilation, and files of the program. Written by bragg/views/web/code.py.

/** What a kernel is at some point of its compilation, first to last. */
export type Stage = "python" | "ttir" | "ttgir" | "llir" | "ptx" | "sass";

/**
 * Row, samples, and samples by reason (row of `reasons`) of a line; the line of the source whose result it waits for.
 * Of a file of the program, times in place of samples: the first one that is told, and each by its row of `times`.
 */
export type LineSamples = [row: number, count: number, byReason: [reason: number, count: number][], waitsFor?: number];

export interface CodePane {
  stage: Stage;
  lines: string[];
  /** As it is shown beside each line; of machine code the offset in bytes. */
  numbers: number[];
  /** Where parts begin, what they are, and their file; empty: it is one. */
  sections: [row: number, title: string, file: string][];
  /** Row of `places` that each line comes from, -1: unknown. Of Python empty: places name its lines. */
  place: number[];
  /** Of machine code the line of the PTX of each instruction, from 1; 0: unknown. */
  ptx: number[];
  /** Lines that have any, ascending. */
  samples: LineSamples[];
}

/** Where code comes from: a line of the source, and the calls by which it came there. */
export interface CodePlace {
  /** Lines whose places share a key belong together; the most exact key first. */
  keys: number[];
  /** Rows of the Python pane: the line itself and those that called it. */
  source: number[];
}

export interface KernelText {
  /** `symbol/hash`: tells specializations apart; empty: none of its texts were recorded. */
  key: string;
  /** As its frames are named; a file of the program by its path. */
  name: string;
  /** What the profile lacks of it, and why. */
  missing: string;
  /** Those that have lines, in the order of stages. */
  panes: CodePane[];
  places: CodePlace[];
  /** All samples of the kernel. */
  samples: number;
  /** Why warps waited: name, group, meaning. */
  reasons: [name: string, group: string, meaning: string][];
  /** Of a file of the program what is told of its lines, and the same of the whole run, ns; null: it is a kernel. */
  times: [name: string, total_ns: number][] | null;
}
