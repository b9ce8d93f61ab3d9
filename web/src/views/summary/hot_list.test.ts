import { expect, it } from "vitest";
import { profileFromText } from "../../data/sample";
import { hotList } from "./hot_list";

const data = profileFromText("scope a\n  kernel gemm 30\nscope b\n  kernel gemm 50\n  kernel copy 20");

it("adds up what has one name and leads to where it took most", () => {
  const rows = hotList(data, "gpu_time", 10);
  expect(rows.map((row) => [data.frames.name[row.frame], row.value, row.share, row.node])).toEqual([
    ["gemm", 80, 0.8, 4],
    ["copy", 20, 0.2, 5],
  ]);
});

it("shares are of all, also of what is not listed", () => {
  expect(hotList(data, "gpu_time", 1)).toMatchObject([{ share: 0.8 }]);
});
