import { describe, expect, it } from "vitest";
import type { ProfileData } from "../../data/profile";
import { profileFromText } from "../../data/sample";
import { ofRows } from "./colouring";
import { bottomUp, type Forest, sandwich, topDown } from "./forest";
import { boxes, neighbour } from "./layout";
import { nameOfRow } from "./names";
import { Phase, phases } from "./phase";
import { search } from "./search";

const TRAINING = `
  scope forward
    python step
      library torch.linear
        library torch.matmul
          kernel gemm 30
      kernel relu 10
  scope backward
    library torch.run
      library torch.engine
        kernel gemm 40
    library stdlib.run
      kernel copy 20`;

/** Each row on a line, as the picture shows them from the top. */
function drawn(data: ProfileData, forest: Forest): string[] {
  const lines: string[] = [];
  const pending = [0];
  while (pending.length) {
    const row = pending.pop() as number;
    lines.push(`${"  ".repeat(forest.depth[row])}${nameOfRow(data, forest, row)} ${forest.value[row]}`);
    for (let child = forest.first[row] + forest.count[row] - 1; child >= forest.first[row]; child--)
      pending.push(child);
  }
  return lines;
}

describe("names", () => {
  it("say what was called in a library, as `bragg view` does, where that is known", () => {
    const data = profileFromText(TRAINING);
    data.libraries[data.libraries.indexOf("torch")] = "torch: Tensor.backward";
    const lines = drawn(data, topDown(data, data.metrics.gpu_time.own, true)).map((line) => line.trim());
    expect(lines).toContain("[torch: Tensor.backward] 40");
  });
});

describe("top down", () => {
  it("puts the largest first and adds up", () => {
    const data = profileFromText("scope a\n  kernel x 1\nscope b\n  kernel x 5\n  kernel y 3");
    const forest = topDown(data, data.metrics.gpu_time.own, false);
    expect(drawn(data, forest)).toEqual(["total 9", "  b 8", "    x 5", "    y 3", "  a 1", "    x 1"]);
    expect(Array.from(forest.start).map((start) => Math.round(start * 9))).toEqual([0, 0, 8, 0, 5, 8]);
  });
  it("merges equal siblings", () => {
    const data = profileFromText("kernel x 1\nkernel x 2");
    expect(drawn(data, topDown(data, data.metrics.gpu_time.own, false))).toEqual(["total 3", "  x 3"]);
  });
  it("folds an excursion under the name of its first package", () => {
    const data = profileFromText(TRAINING);
    const forest = topDown(data, data.metrics.gpu_time.own, true);
    expect(drawn(data, forest)).toEqual([
      "total 100",
      "  backward 60",
      "    [torch: 2 frames] 40",
      "      gemm 40",
      "    [stdlib: 1 frame] 20",
      "      copy 20",
      "  forward 40",
      "    step 40",
      "      [torch: 2 frames] 30",
      "        gemm 30",
      "      relu 10",
    ]);
  });
  it("counts the frames of the longest way through a library, whatever else it calls", () => {
    const branches = `
      library torch.run
        library torch.linear
          kernel gemm 30
        library torch.relu
          library torch.clamp
            kernel relu 10`;
    const data = profileFromText(branches);
    const forest = topDown(data, data.metrics.gpu_time.own, true);
    expect(drawn(data, forest)).toEqual(["total 40", "  [torch: 3 frames] 40", "    gemm 30", "    relu 10"]);
  });
  it("leaves out what has no value and still finds it a row", () => {
    const data = profileFromText("scope a\n  kernel x 1\nscope idle");
    const forest = topDown(data, data.metrics.gpu_time.own, false);
    expect(Array.from(forest.rowOfNode)).toEqual([0, 1, 2, -1]);
  });
});

describe("bottom up", () => {
  it("adds up over callers and keeps the whole", () => {
    const data = profileFromText(TRAINING);
    const forest = bottomUp(data, data.metrics.gpu_time.own, true);
    expect(drawn(data, forest)).toEqual([
      "total 100",
      "  gemm 70",
      "    [torch: 2 frames] 70",
      "      backward 40",
      "      step 30",
      "        forward 30",
      "  copy 20",
      "    [stdlib: 1 frame] 20",
      "      backward 20",
      "  relu 10",
      "    step 10",
      "      forward 10",
    ]);
  });
  it("is one row for a profile of one node", () => {
    const data = profileFromText("");
    expect(bottomUp(data, data.metrics.gpu_time.own, true).key.length).toBe(1);
  });
});

describe("boxes", () => {
  const data = profileFromText("scope a\n  kernel x 900\nscope b\n  kernel y 99\nscope c\n  kernel z 1");
  const forest = topDown(data, data.metrics.gpu_time.own, false);
  it("draws what is too narrow as one rest", () => {
    const rest = boxes(forest, 0, 500).filter((box) => box.row < 0);
    expect(rest).toEqual([]);
    expect(boxes(forest, 0, 500).length).toBe(5);
    expect(boxes(forest, 0, 2000).length).toBe(7);
  });
  it("gives the zoomed row and all above it the whole width", () => {
    const wide = boxes(forest, forest.rowOfNode[4], 500).filter((box) => box.width === 500);
    expect(wide.map((box) => nameOfRow(data, forest, box.row)).sort()).toEqual(["b", "total", "y"]);
  });
  it("steps to neighbours and stays at the ends", () => {
    const b = forest.rowOfNode[3];
    const names = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"].map((key) =>
      nameOfRow(data, forest, neighbour(forest, b, key)),
    );
    expect(names).toEqual(["total", "y", "a", "c"]);
    expect(neighbour(forest, 0, "ArrowUp")).toBe(0);
  });
});

describe("search", () => {
  it("counts matches below matches once", () => {
    const data = profileFromText(TRAINING);
    const forest = topDown(data, data.metrics.gpu_time.own, false);
    expect(search(data, forest, "/^(forward|gemm)$/")).toMatchObject({ count: 3, share: 0.8 });
  });
});

describe("phases", () => {
  it("last until the leaves, and backward wins", () => {
    const data = profileFromText("scope forward\n  kernel a 1\noperator MmBackward0\n  scope forward\n    kernel b 1");
    expect(Array.from(phases(data))).toEqual([
      Phase.Neither,
      Phase.Forward,
      Phase.Forward,
      Phase.Backward,
      Phase.Backward,
      Phase.Backward,
    ]);
  });
});

describe("values of rows", () => {
  it("add up, and of properties are the largest", () => {
    const data = profileFromText("kernel x 1\nkernel x 2");
    const forest = topDown(data, data.metrics.gpu_time.own, false);
    const { own } = data.metrics.gpu_time;
    expect(ofRows(data, forest, { unit: "ns", kind: "inclusive", own })[1]).toBe(3);
    expect(ofRows(data, forest, { unit: "ns", kind: "property", own })[1]).toBe(2);
  });
});

describe("a sandwich", () => {
  const data = profileFromText(
    "scope a\n  scope f\n    kernel x 3\n    scope f\n      kernel y 2\nscope b\n  scope f\n    kernel x 1\nkernel x 9",
  );
  const node = Array.from(data.tree.frame).findIndex((frame) => data.frames.name[frame] === "f");
  const forest = sandwich(data, data.metrics.gpu_time.own, false, node);
  const named = (rows: number[]) => rows.map((row) => [data.frames.name[forest.key[row]], forest.value[row]]);
  const below = (row: number) => Array.from({ length: forest.count[row] }, (_, index) => forest.first[row] + index);

  it("has what a name called below it, of all its places", () => {
    expect(named([0, ...below(0)])).toEqual([
      ["f", 6],
      ["x", 4],
      ["f", 2],
    ]);
  });

  it("has who called it, with what passed through them", () => {
    expect(named([forest.callers, ...below(forest.callers)])).toEqual([
      ["f", 6],
      ["a", 5],
      ["b", 1],
    ]);
  });
});
