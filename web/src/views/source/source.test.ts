import { describe, expect, it } from "vitest";
import type { CodePane, KernelText, Stage } from "../../data/code";
import type { Finding } from "../../data/profile";
import { Heat } from "./heat";
import { CodeLinks } from "./links";
import { entriesOf, hasLocations, mainRow, noteOf, notesOf, numberText, placesOf, seen, withoutLocation } from "./rows";
import { tokensOf } from "./tokens";

function pane(stage: Stage, place: number[], more: Partial<CodePane> = {}): CodePane {
  const lines = place.length > 0 ? place.map((_, row) => `${stage} ${row}`) : ["a", "b", "c"];
  const numbers = lines.map((_, row) => row + 1);
  return { stage, lines, numbers, sections: [], place, ptx: [], samples: [], ...more };
}

// Row 1 of Python calls row 2; the TTIR knows columns, the machine code lines only.
const KERNEL: KernelText = {
  key: "k/1",
  name: "k",
  missing: "",
  panes: [
    pane("python", []),
    pane("ttir", [0, 1, -1]),
    pane("ptx", [2, 3, 3]),
    pane("sass", [2, 3, 3, -1], { ptx: [1, 2, 0, 3], numbers: [0, 16, 32, 48] }),
  ],
  places: [
    { keys: [10, 11, 20], source: [0] },
    { keys: [12, 13, 21], source: [2, 1] },
    { keys: [20], source: [0] },
    { keys: [21], source: [2, 1] },
  ],
  samples: 10,
  reasons: [
    ["long_scoreboard", "memory", "data"],
    ["wait", "math", ""],
  ],
  times: null,
};
const PROGRAM: KernelText = {
  ...KERNEL,
  name: "/a.py",
  samples: 0,
  times: [
    ["host_time", 8e9],
    ["gpu_time", 2e9],
  ],
};
const SPECIALIZED = { ...KERNEL, name: "k<32>" };
const LINKS = new CodeLinks(KERNEL);

describe("a line", () => {
  it("of Python becomes what comes from it and what it inlined", () => {
    expect(LINKS.rows({ stage: "python", row: 1 }, "ttir")).toEqual([1]);
    expect(LINKS.rows({ stage: "python", row: 1 }, "sass")).toEqual([1, 2]);
    expect(LINKS.rows({ stage: "python", row: 0 }, "ptx")).toEqual([0]);
  });

  it("comes from a line of Python, and from those that called it", () => {
    expect(LINKS.rows({ stage: "ttir", row: 1 }, "python")).toEqual([2, 1]);
  });

  it("is linked as exactly as both texts know", () => {
    expect(LINKS.rows({ stage: "ttir", row: 0 }, "sass")).toEqual([0]);
    expect(LINKS.rows({ stage: "sass", row: 1 }, "ttir")).toEqual([1]);
  });

  it("of machine code knows its line of the PTX", () => {
    expect(LINKS.rows({ stage: "sass", row: 1 }, "ptx")).toEqual([1]);
    expect(LINKS.rows({ stage: "sass", row: 2 }, "ptx")).toEqual([]);
    expect(LINKS.rows({ stage: "ptx", row: 2 }, "sass")).toEqual([3]);
  });

  it("without a place belongs to nothing", () => {
    expect([...LINKS.all({ stage: "ttir", row: 2 }).keys()]).toEqual(["ttir"]);
  });

  it("lists what belongs to it in every text", () => {
    const all = LINKS.all({ stage: "python", row: 0 });
    expect(Object.fromEntries(all)).toEqual({ python: [0], ttir: [0], ptx: [0], sass: [0] });
  });
});

describe("heat", () => {
  const samples: CodePane["samples"] = [
    [0, 2, [[1, 2]]],
    [
      2,
      8,
      [
        [1, 2],
        [0, 6],
      ],
    ],
  ];
  const heat = new Heat(KERNEL, pane("sass", [0, 1, 2], { samples }));

  it("is the share of the kernel and of the hottest line", () => {
    expect([heat.share(2), heat.relative(2), heat.relative(0), heat.share(1)]).toEqual([0.8, 1, 0.25, 0]);
    expect(heat.hottest()).toEqual([2, 0]);
    const waiting = new Heat(KERNEL, pane("sass", [0], { samples: [[0, 5, [[0, 5]], 19]] }));
    expect([waiting.waitsFor(0), heat.waitsFor(2)]).toEqual([19, undefined]);
  });

  it("of a file of the program is each of its times", () => {
    const timed: CodePane["samples"] = [
      [0, 3e9, [[0, 3e9]]],
      [2, 1e9, [[1, 1e9]]],
    ];
    const heat = new Heat(PROGRAM, pane("python", [], { samples: timed }));
    expect([0, 1, 2].map((row) => heat.times(row))).toEqual([
      [3e9, 0],
      [0, 0],
      [0, 1e9],
    ]);
  });

  it("names the reasons, the main one first", () => {
    expect(heat.reasons(2).map((reason) => [reason.name, reason.share])).toEqual([
      ["long_scoreboard", 0.75],
      ["wait", 0.25],
    ]);
    expect(heat.reasons(1)).toEqual([]);
  });
});

describe("entries of a pane", () => {
  const parted = pane("python", [], {
    sections: [
      [0, "f", "/a.py"],
      [2, "g", "/b.py"],
    ],
  });

  it("have the titles before their parts", () => {
    expect([...entriesOf(parted)]).toEqual([-1, 0, 1, -2, 2]);
    expect([...placesOf(entriesOf(parted), 3)]).toEqual([1, 2, 4]);
  });

  it("have the findings below their lines", () => {
    const found = { rule: "spills", message: "48 instructions", file: "/a.py", line: 2 } as Finding;
    const notes = notesOf(parted, [found, { ...found, line: 3 }, { ...found, file: "/b.py", line: 3 }], SPECIALIZED);
    expect(notes).toEqual([
      { row: 1, text: "^ spills: 48 instructions" },
      { row: 2, text: "^ spills: 48 instructions" },
    ]);
    expect([...entriesOf(parted, false, notes)]).toEqual([-1, 0, 1, -3, -2, 2, -4]);
    expect([...placesOf(entriesOf(parted, false, notes), 3)]).toEqual([1, 2, 5]);
  });

  it("have no findings of other specializations", () => {
    const found = { rule: "spills", message: "48 instructions", file: "/a.py", line: 2 } as Finding;
    const notes = notesOf(
      parted,
      [
        { ...found, kernel: "k<64>" },
        { ...found, kernel: "k<32>" },
      ],
      SPECIALIZED,
    );
    expect(notes.map((note) => note.row)).toEqual([1]);
    expect(notesOf(parted, [{ ...found, kernel: "k<64>" }], SPECIALIZED)).toEqual([]);
  });

  it("of a file of the program have the findings that matter, with what they save, whichever kernel they name", () => {
    const found = {
      rule: "loop",
      message: "one by one",
      file: "/a.py",
      line: 2,
      kernel: "gemm",
      isWorth: true,
    } as Finding;
    const gain = { wall_ns: 5, of_ns: 10, limit: "", is_once: false, share: 0.5 };
    const findings = [
      { ...found, gain, gainText: "50 %" },
      { ...found, isWorth: false },
    ];
    expect(notesOf(parted, findings, PROGRAM)).toEqual([{ row: 1, text: "^ saves 50 %  loop: one by one" }]);
  });

  it("exist where they are seen", () => {
    expect(seen(1800, 180, 18, 20_000, 0)).toEqual([100, 110]);
    expect(seen(0, 180, 18, 5)).toEqual([0, 5]);
  });

  it("are numbered by offset in machine code", () => {
    expect(numberText(KERNEL.panes[3], 2)).toBe("0020");
    expect(numberText(KERNEL.panes[1], 2)).toBe("3");
  });
});

it("of rows that are apart the largest group is brought into view", () => {
  expect(mainRow([5, 900, 905, 907])).toBe(900);
  expect(mainRow([7])).toBe(7);
});

describe("tokens", () => {
  const kinds = (stage: Stage, line: string): string[] =>
    tokensOf(stage, line)
      .filter((token) => token.kind !== "plain")
      .map((token) => `${token.kind} ${token.text.trim()}`);

  it("of Python", () => {
    expect(kinds("python", "    x = tl.load(p + 4, other=0.5)  # 'x'")).toEqual([
      "name load",
      "number 4",
      "number 0.5",
      "comment # 'x'",
    ]);
    expect(kinds("python", "def f(x): return 'if'")).toEqual([
      "keyword def",
      "name f",
      "keyword return",
      "string 'if'",
    ]);
  });

  it("of TTGIR", () => {
    expect(kinds("ttgir", "%3 = tt.load %1 : tensor<128x!tt.ptr<f32>, #blocked> loc(#loc5)")).toEqual([
      "register %3",
      "keyword tt.load",
      "register %1",
      "type tensor",
      "type !tt.ptr",
      "type f32",
      "label #blocked",
      "comment loc(#loc5)",
    ]);
  });

  it("of PTX and of machine code", () => {
    expect(kinds("ptx", "\t@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];").slice(0, 2)).toEqual([
      "register %p1",
      "keyword ld.global.b32",
    ]);
    expect(kinds("sass", "@!P0 LDG.E R1, desc[UR4][R2.64] ;")).toEqual([
      "label @!P0",
      "keyword LDG.E",
      "register R1",
      "type desc",
      "register UR4",
      "register R2",
      "number 64",
    ]);
  });

  it("together are the line, whatever it holds", () => {
    for (const line of ["", "<script>alert(1)</script>", "\u202eabc\u0000", "'".repeat(99), '"""'.repeat(50)]) {
      for (const stage of ["python", "ttir", "llir", "ptx", "sass"] as const) {
        expect(
          tokensOf(stage, line)
            .map((token) => token.text)
            .join(""),
        ).toBe(line);
      }
    }
  });

  it("of a very long line are one", () => {
    expect(tokensOf("ptx", "a ".repeat(5000))).toHaveLength(1);
  });
});

it("texts that keep only the place in the source say that their lines share samples", () => {
  const note = (stage: Stage, hasSamples = true) => noteOf(pane(stage, [0, 0]), hasSamples);
  expect(note("ttgir")).toBe("2 lines, each with all samples of its place in the source");
  expect([note("ttir", false), note("ptx"), note("sass")]).toEqual(["2 lines", "2 lines", "2 instructions"]);
});

describe("locations of MLIR", () => {
  const lines = [
    '#loc = loc("a.py":16:0)',
    "module {",
    '  tt.func @k(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc(#loc3)) {',
    '  } loc("a.py":16:0)',
    "#loc1 = loc(unknown)",
  ];
  const text: CodePane = { ...pane("ttgir", []), lines };

  it("are hidden with the lines that only name them", () => {
    expect(hasLocations(text)).toBe(true);
    expect([...entriesOf(text, true)]).toEqual([1, 2, 3]);
    expect([...placesOf(entriesOf(text, true), 5)]).toEqual([0, 0, 1, 2, 2]);
    expect(lines.slice(2, 4).map(withoutLocation)).toEqual(["  tt.func @k(%x: !tt.ptr<f32>, %n: i32) {", "  }"]);
  });

  it("of LLVM are hidden, too", () => {
    const llvm = ["  ret void, !dbg !7", "!1 = !DIFile(a)", "!4 = distinct !DISubprogram(b)", "attributes #0 = { }"];
    const text: CodePane = { ...pane("llir", []), lines: llvm };
    expect(hasLocations(text)).toBe(true);
    expect([...entriesOf(text, true)]).toEqual([0, 3]);
    expect(withoutLocation(llvm[0])).toBe("  ret void");
  });

  it("are not looked for in other texts", () => {
    expect(hasLocations({ ...text, stage: "ptx" })).toBe(false);
  });
});
