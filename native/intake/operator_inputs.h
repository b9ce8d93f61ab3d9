// What an operator of PyTorch was given: shapes and types of its tensors, as text behind its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bragg::operator_inputs {

// One for each input: sizes of a tensor, nothing for what is none and for a tensor without dimensions.
using Sizes = std::vector<std::vector<int64_t>>;
// One for each input as well, or none at all: "float", "c10::BFloat16", "long int"; "Int", "Device" of what is no
// tensor; "" of lists.
using Types = std::vector<std::string>;

// "aten::addmm[64 f32, 32x64 f32, 64x64 f32]": the tensors alone, the first eight of them.
[[nodiscard]] std::string with_inputs(std::string_view name, const Sizes& sizes, const Types& types);

// Finds the functions of PyTorch that tell them. False: this PyTorch tells no shapes. Types may be missing still:
// wheels before 2.7 have the strings of an earlier C++.
[[nodiscard]] bool find(void* torch_library);

// The same of an operator that runs, an at::RecordFunction whose inputs were asked for; its name alone where a tensor
// has no sizes that could be told. Threads: the program's.
[[nodiscard]] std::string with_inputs(std::string_view name, const void* running) noexcept;

}  // namespace bragg::operator_inputs
