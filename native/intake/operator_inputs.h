// What an operator of PyTorch was given: shapes and types of its tensors, as text behind its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bragg::operator_inputs {

// One for each input: sizes of a tensor; empty for other inputs and for a tensor without dimensions.
using Sizes = std::vector<std::vector<int64_t>>;
// One for each input as well, or none at all: "float", "c10::BFloat16", "long int"; "Int", "Device" of what is not a
// tensor; "" of lists.
using Types = std::vector<std::string>;

// "aten::addmm[64 f32, 32x64 f32, 64x64 f32]": the tensors alone, the first eight of them.
[[nodiscard]] std::string with_inputs(std::string_view name, const Sizes& sizes, const Types& types);

// Finds the functions of PyTorch that tell them. False: this PyTorch tells no shapes. Types may still be missing:
// wheels before 2.7 have strings of an older ABI.
[[nodiscard]] bool find(void* torch_library);

// The same of an operator that runs, an at::RecordFunction whose inputs were asked for; its name alone where a tensor
// has no sizes that could be told. Threads: the program's.
[[nodiscard]] std::string with_inputs(std::string_view name, const void* running) noexcept;

}  // namespace bragg::operator_inputs
