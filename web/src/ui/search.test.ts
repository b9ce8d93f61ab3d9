import { describe, expect, it } from "vitest";
import { tester } from "./search";

describe("tester", () => {
  it("finds text in any case, and takes a malformed expression as text", () => {
    expect(tester("GEMM")("gemm_kernel")).toBe(true);
    expect(tester("/^gemm$/")("gemm_kernel")).toBe(false);
    expect(tester("/(/")("a/(/b")).toBe(true);
  });
});
