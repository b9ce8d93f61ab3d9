import { describe, expect, it } from "vitest";
import { cut, printable } from "./text";

describe("text", () => {
  it("escapes what cannot be seen", () => {
    expect(printable("a\0b\u202ec\nd")).toBe("a\\x00b\\u202ec\\x0ad");
  });
  it("keeps letters of all scripts", () => {
    expect(printable("größe ядро 核 😀")).toBe("größe ядро 核 😀");
  });
  it("marks what was cut off", () => {
    expect(cut("matmul_kernel", 7)).toBe("matmul…");
    expect(cut("matmul", 6)).toBe("matmul");
  });
});
