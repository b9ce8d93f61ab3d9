// Names of operators with the shapes and types of their tensors.
#include "check.h"
#include "intake/operator_inputs.h"

namespace {

using bragg::operator_inputs::Sizes;
using bragg::operator_inputs::with_inputs;

TEST(tensors_stand_behind_the_name_of_their_operator) {
  const Sizes sizes{{64}, {32, 64}, {64, 64}, {}, {}};
  CHECK_EQ(with_inputs("aten::addmm", sizes, {"float", "c10::BFloat16", "c10::Float8_e4m3fn", "Int", "Double"}),
           "aten::addmm[64 f32, 32x64 bf16, 64x64 Float8_e4m3fn]");
  CHECK_EQ(with_inputs("aten::addmm", sizes, {}), "aten::addmm[64, 32x64, 64x64]");
}

TEST(a_tensor_without_dimensions_is_told_from_a_number) {
  CHECK_EQ(with_inputs("aten::mul", {{2, 0}, {}, {}}, {"long int", "double", "Int"}), "aten::mul[2x0 i64, () f64]");
  CHECK_EQ(with_inputs("aten::abs", {{3}}, {"c10::complex<float>"}), "aten::abs[3 c64]");
}

TEST(an_operator_without_tensors_keeps_its_name) {
  CHECK_EQ(with_inputs("a, [b]\n", {}, {}), "a, [b]\n");
  CHECK_EQ(with_inputs("aten::arange", {{}, {}}, {"Device", ""}), "aten::arange");
}

TEST(many_tensors_and_long_shapes_are_cut) {
  CHECK_EQ(with_inputs("f", Sizes(100'000, {7}), {}), "f[7, 7, 7, 7, 7, 7, 7, 7, ...]");
  CHECK_EQ(with_inputs("f", {std::vector<int64_t>(100'000, 1)}, {}), "f[1x1x1x1x1x1x1x1x...]");
}

}  // namespace
