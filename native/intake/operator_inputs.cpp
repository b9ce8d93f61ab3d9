#include "intake/operator_inputs.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

namespace bragg::operator_inputs {
namespace {

// A tensor may have a thousand dimensions; a name is something to read.
constexpr size_t kMaxTensors = 8;
constexpr size_t kMaxDimensions = 8;
constexpr std::string_view kMore = "...";

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kShortTypes{{{"float", "f32"},
                                                                                     {"double", "f64"},
                                                                                     {"c10::Half", "f16"},
                                                                                     {"c10::BFloat16", "bf16"},
                                                                                     {"c10::complex<float>", "c64"},
                                                                                     {"c10::complex<double>", "c128"},
                                                                                     {"long int", "i64"},
                                                                                     {"long", "i64"},
                                                                                     {"int", "i32"},
                                                                                     {"short int", "i16"},
                                                                                     {"short", "i16"},
                                                                                     {"signed char", "i8"},
                                                                                     {"unsigned char", "u8"},
                                                                                     {"bool", "bool"}}};

// Types of what is not a tensor are names like Int and Device, or nothing for lists.
bool is_of_tensor(std::string_view type) { return !type.empty() && (type.front() < 'A' || type.front() > 'Z'); }

std::string_view short_type(std::string_view type) {
  const auto* known = std::ranges::find(kShortTypes, type, &std::pair<std::string_view, std::string_view>::first);
  if (known != kShortTypes.end()) return known->second;
  constexpr std::string_view kSpace = "c10::";
  return type.starts_with(kSpace) ? type.substr(kSpace.size()) : type;
}

// "32x64"; a tensor without dimensions is "()".
std::string shape_of(const std::vector<int64_t>& sizes) {
  if (sizes.empty()) return "()";
  std::string text;
  for (size_t i = 0; i < std::min(sizes.size(), kMaxDimensions); ++i) {
    if (i > 0) text += 'x';
    text += std::to_string(sizes[i]);
  }
  return sizes.size() > kMaxDimensions ? text.append("x").append(kMore) : text;
}

// What is written of one input; nothing of what is not a tensor.
std::string text_of(const std::vector<int64_t>& sizes, const std::string* type) {
  if (sizes.empty() && (type == nullptr || !is_of_tensor(*type))) return {};
  if (type == nullptr || type->empty()) return shape_of(sizes);
  return shape_of(sizes).append(" ").append(short_type(*type));
}

struct Functions {
  Sizes (*sizes)(const void* running, bool flatten_lists);
  Types (*types)(const void* running);
};
constinit Functions torch{};

}  // namespace

std::string with_inputs(std::string_view name, const Sizes& sizes, const Types& types) {
  std::string text(name);
  size_t tensors = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string input = text_of(sizes[i], types.size() == sizes.size() ? &types[i] : nullptr);
    if (input.empty()) continue;
    text += tensors == 0 ? "[" : ", ";
    if (tensors++ == kMaxTensors) {
      text += kMore;
      break;
    }
    text += input;
  }
  return tensors == 0 ? text : text + "]";
}

bool find(void* torch_library) {
  const auto symbol = [torch_library](const char* name) { return dlsym(torch_library, name); };
  torch.sizes =
      reinterpret_cast<decltype(torch.sizes)>(symbol("_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb"));
  torch.types = reinterpret_cast<decltype(torch.types)>(
      symbol("_ZN5torch8profiler4impl10inputTypesB5cxx11ERKN2at14RecordFunctionE"));
  return torch.sizes != nullptr;
}

std::string with_inputs(std::string_view name, const void* running) noexcept {
  try {
    return with_inputs(name, torch.sizes(running, false), torch.types != nullptr ? torch.types(running) : Types());
  } catch (...) {  // sparse and nested tensors, and those of which only symbols are known
    return std::string(name);
  }
}

}  // namespace bragg::operator_inputs
