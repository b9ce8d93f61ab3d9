import { describe, expect, it } from "vitest";
import { groupsOf } from "./lanes";
import { type Ink, mixed, paintRow, pixelOf, type Wide } from "./paint";
import { traceFromText } from "./trace_text";

const WHITE = pixelOf("#ffffff");
const BLACK = pixelOf("#000000");
const RED = pixelOf("#ff0000");

/** How dark each pixel is, 0 to 1, of slices of one lane. */
function painted(slices: string, width: number, scale: number, start = 0, ink: Partial<Ink> = {}): number[] {
  const row = groupsOf(traceFromText(`stream 7\n${slices}`))[0].lanes[0].rows[0];
  const line = new Uint32Array(width).fill(WHITE);
  const wide: Wide[] = [];
  paintRow(line, row, { start, scale }, { colourOf: () => BLACK, hits: null, hit: RED, ...ink }, 1e9, wide);
  return [...line].map((pixel) => Math.round((1 - (pixel & 0xff) / 255) * 100) / 100);
}

describe("a painted row", () => {
  it("covers pixels in full and edges in part", () => {
    expect(painted("  5-30 a", 5, 10)).toEqual([0.5, 1, 1, 0, 0]);
  });

  it("parts slices that touch by a pixel", () => {
    expect(painted("  0-5 a\n  5-10 b", 10, 1)).toEqual([1, 1, 1, 1, 0, 1, 1, 1, 1, 0]);
  });

  it("shows the share of a pixel that many slices fill", () => {
    const many = Array.from({ length: 100 }, (_, index) => `  ${index * 10}-${index * 10 + 6} k`).join("\n");
    expect(painted(many, 10, 100)).toEqual(Array(10).fill(0.6));
  });

  it("shows the shortest slice", () => {
    expect(painted("  500-501 a", 10, 100)[5]).toBeGreaterThan(0.3);
  });

  it("begins within a slice that began before the view", () => {
    expect(painted("  0-100 a", 4, 10, 80)).toEqual([1, 0, 0, 0]);
  });

  it("lets no found slice vanish among others", () => {
    const hits = Int32Array.from({ length: 101 }, (_, index) => (index > 50 ? 1 : 0));
    const many = Array.from({ length: 100 }, (_, index) => `  ${index * 10}-${index * 10 + 9} k`).join("\n");
    const row = groupsOf(traceFromText(`stream 7\n${many}`))[0].lanes[0].rows[0];
    const line = new Uint32Array(10).fill(WHITE);
    paintRow(line, row, { start: 0, scale: 100 }, { colourOf: () => BLACK, hits, hit: RED }, 1e9, []);
    expect([...line].indexOf(RED)).toBe(5);
  });

  it("lists slices that are wide enough for a name", () => {
    const row = groupsOf(traceFromText("stream 7\n  0-40 a\n  50-55 b"))[0].lanes[0].rows[0];
    const wide: Wide[] = [];
    const ink = { colourOf: () => BLACK, hits: null, hit: RED };
    paintRow(new Uint32Array(60), row, { start: 0, scale: 1 }, ink, 20, wide);
    expect(wide).toEqual([{ index: 0, x: 0, width: 40 }]);
  });

  it("costs as much as its pixels, however many slices there are", () => {
    const count = 200_000;
    const start = Float64Array.from({ length: count }, (_, index) => index * 10);
    const row = {
      slices: Int32Array.from(start.keys()),
      start,
      end: start.map((at) => at + 7),
      busy: Float64Array.from({ length: count + 1 }, (_, index) => index * 7),
    };
    let asked = 0;
    const colourOf = () => {
      asked += 1;
      return BLACK;
    };
    const line = new Uint32Array(1000).fill(WHITE);
    paintRow(line, row, { start: 0, scale: (count * 10) / 1000 }, { colourOf, hits: null, hit: RED }, 1e9, []);
    expect(asked).toBe(1000);
    expect(new Set(line).size).toBe(1);
  });
});

it("colours mix", () => {
  expect(mixed(WHITE, BLACK, 0)).toBe(WHITE);
  expect(mixed(WHITE, BLACK, 1)).toBe(BLACK);
  expect(mixed(BLACK, pixelOf("#804020"), 0.5).toString(16)).toBe("ff102040");
});
