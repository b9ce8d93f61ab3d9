import { describe, expect, test } from "vitest";
import { boxesOf, changeShare, fateOf, neighbour, scaleOf, sidesOf } from "./sides";

// root > (a > (b, c), d): b became slower, c is gone, d is new.
const TREE = {
  parent: Int32Array.of(-1, 0, 1, 1, 0),
  frame: Int32Array.of(0, 1, 2, 3, 4),
  fold: new Int32Array(5).fill(-1),
};
const SIDES = sidesOf(TREE, Float64Array.of(0, 0, 10, 30, 0), Float64Array.of(0, 0, 20, 0, 60));

describe("two sides", () => {
  test("have values with what ran below", () => {
    expect([...SIDES.before]).toEqual([40, 40, 10, 30, 0]);
    expect([...SIDES.after]).toEqual([80, 20, 20, 0, 60]);
  });

  test("order siblings alike, what takes longest on either side first", () => {
    expect(SIDES.children).toEqual([[4, 1], [3, 2], [], [], []]);
  });

  test("have one scale, so that the longer side takes the width", () => {
    const scale = scaleOf(SIDES, 0, 800);
    const widths = (side: "before" | "after") =>
      Object.fromEntries(boxesOf(TREE, SIDES, side, 0, scale).map((box) => [box.node, [box.x, box.width]]));
    expect(widths("before")).toEqual({ 0: [0, 400], 1: [0, 400], 2: [300, 100], 3: [0, 300] });
    expect(widths("after")).toEqual({ 0: [0, 800], 4: [0, 600], 1: [600, 200], 2: [600, 200] });
  });

  test("show nothing of a node that one of them does not have", () => {
    expect(boxesOf(TREE, SIDES, "before", 4, scaleOf(SIDES, 4, 100))).toEqual([]);
    expect(boxesOf(TREE, SIDES, "after", 4, scaleOf(SIDES, 4, 100)).map((box) => box.node)).toEqual([4, 0]);
  });
});

test("a node is new, gone, longer, shorter or the same", () => {
  const pairs = [
    [0, 5],
    [5, 0],
    [5, 6],
    [6, 5],
    [5, 5],
  ];
  expect(pairs.map(([before, after]) => fateOf(before, after))).toEqual(["new", "gone", "longer", "shorter", "same"]);
  expect(pairs.map(([before, after]) => changeShare(before, after))).toEqual([1, -1, 0.2, -1 / 6, 0]);
});

test("arrows lead to what is drawn beside, above and below", () => {
  const to = (node: number, key: string) => neighbour(TREE, SIDES, node, key);
  expect([to(0, "ArrowDown"), to(4, "ArrowRight"), to(1, "ArrowRight"), to(1, "ArrowUp"), to(0, "ArrowUp")]).toEqual([
    4, 1, 1, 0, 0,
  ]);
});
