import { describe, expect, it } from "vitest";
import { cut, cutBelow, cutMiddle, numbersApart, partsApart, printable } from "./text";

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
  it("keeps both ends of a name where there is room for them", () => {
    expect(cutMiddle("GPT2LMHeadModel.transformer.h.0.attn", 17)).toBe("GPT2LMHe…h.0.attn");
    expect(cutMiddle("GPT2LMHeadModel.transformer.h.0.attn", 6)).toBe("GPT2L…");
    expect(cutMiddle("forward", 7)).toBe("forward");
  });
  it("leaves out of a name below its caller what both share", () => {
    expect(cutBelow("Model.layers.10", "Model.layers", 15)).toBe("Model.layers.10");
    expect(cutBelow("Model.layers.10", "Model.layers", 6)).toBe(".10");
    expect(cutBelow("Model.layers.10", "Model.layers", 2)).toBe("…0");
    expect(cutBelow("Model.layers.10", "Mod", 6)).toBe("Model…");
    expect(cutBelow("Model.layers.10", "", 6)).toBe("Model…");
  });
  it("finds numbers with their units", () => {
    expect(numbersApart("12.2 % of 8.06 ms, 8 others, 3 steps")).toEqual([
      "",
      "12.2 %",
      " of ",
      "8.06 ms",
      ", 8 others, 3 steps",
    ]);
  });
  it("keeps what tells names apart, which may be before their end", () => {
    const names = [
      "cutlass_80_simt_sgemm_256x128_8x4_nt_align1",
      "cutlass_80_simt_sgemm_128x256_8x4_nt_align1",
      "copy",
    ];
    expect(partsApart(names).map(([, tail]) => tail)).toEqual(["mm_256x128_8x4", "mm_128x256_8x4", "py"]);
    expect(partsApart(names).map((parts) => parts.join(""))).toEqual(names);
    expect(partsApart(["a_rather_long_name_of_a_kernel"])).toEqual([["a_rather_long_na", "me_of_a_kernel", ""]]);
  });
});

it("a name that only ends like others does not hide what tells similar ones apart", () => {
  const names = [
    "batch_norm_backward<bf16, float, int>",
    "batch_norm_transform<bf16, float, int>",
    "pool<bf16, float, int>",
  ];
  expect(partsApart(names).map(([, kept]) => kept)).toEqual(["rm_backward<bf", "rm_transform<b", "float, int>"]);
});

it("two names that begin like a third keep what tells them from each other, too", () => {
  const names = [
    "multi_tensor_apply[PointwiseOpScalarList<float>]",
    "multi_tensor_apply[PointwiseOpScalar<float>]",
    "multi_tensor_apply[TernaryOpScalar<float>]",
    "multi_tensor_apply[BinaryOpScalarList<float>]",
  ];
  expect(partsApart(names).map(([, kept]) => kept)).toEqual([
    "ly[PointwiseOpScalarList",
    "ly[PointwiseOpScalar<flo",
    "ly[TernaryOpSc",
    "ly[BinaryOpSca",
  ]);
});
