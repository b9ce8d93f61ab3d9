import { describe, expect, it } from "vitest";
import { Geometry } from "./geometry";
import { modelOf } from "./model";
import { firstScene } from "./scene";
import { traceFromText } from "./trace_text";

const DATA = traceFromText("thread 1\n  0-1000 step\nstream 7\n  200-500 matmul\n  700-720 relu\n", [
  [500, 700, "relu"],
]);
const MODEL = modelOf(DATA);
const SCENE = firstScene(MODEL.length_ns);
const STREAM_Y = 50;

function geometry(width_px = 1000, height_px = 400, closed = new Set<number>()): Geometry {
  const made = new Geometry(DATA, MODEL);
  made.resize(width_px, height_px, closed);
  return made;
}

function name(slice: number): string {
  return DATA.frames.name[DATA.tree.frame[DATA.slices.node[slice]]];
}

describe("a place on the stage", () => {
  it("and its time are one and the same", () => {
    const wide = geometry();
    expect(wide.xOf(-20, SCENE.span)).toBe(150);
    expect(wide.timeAt(wide.xOf(640, SCENE.span), SCENE.span)).toBeCloseTo(640);
  });

  it("has a slice, or one that is near", () => {
    const wide = geometry();
    expect(name(wide.hit(wide.xOf(300, SCENE.span), STREAM_Y, SCENE).slice)).toBe("matmul");
    expect(name(wide.hit(wide.xOf(720, SCENE.span) + 2, STREAM_Y, SCENE).slice)).toBe("relu");
  });

  it("between slices of a GPU has a gap", () => {
    const wide = geometry();
    expect(wide.hit(wide.xOf(600, SCENE.span), STREAM_Y, SCENE)).toMatchObject({
      slice: -1,
      gap: { start: 500, end: 700 },
    });
  });

  it("may be a label, the ruler or the head of a group", () => {
    const wide = geometry();
    expect(wide.hit(20, STREAM_Y, SCENE).inLabels).toBe(true);
    expect(wide.hit(500, 10, SCENE).inRuler).toBe(true);
    expect(wide.hit(500, 30, SCENE).band?.lane).toBeNull();
  });
});

it("a narrow stage has its labels above the lanes", () => {
  expect([geometry(390).labels_px, geometry(390).plot_px]).toEqual([0, 390]);
  expect(geometry(390).yOf(0, 0) - geometry(1000).yOf(0, 0)).toBeGreaterThan(0);
});

it("slices of a closed group are nowhere", () => {
  expect(geometry(1000, 400, new Set([0])).yOf(0, 0)).toBeNaN();
});

it("lanes scroll as far as they do not fit", () => {
  expect(geometry(1000, 400).overflow_px).toBe(0);
  expect(geometry(1000, 60).overflow_px).toBeGreaterThan(0);
});
