#include "bindings/metrics_binding.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/bragg_core.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

std::vector<bool>& metric_is_float() {  // by id; GIL
  static auto& types = *new std::vector<bool>;
  return types;
}

uint32_t metric(const std::string& name, const std::string& kind, const std::string& unit, bool is_float) {
  const int number = kind == "inclusive"   ? BRAGG_INCLUSIVE
                     : kind == "exclusive" ? BRAGG_EXCLUSIVE
                     : kind == "property"  ? BRAGG_PROPERTY
                                           : -1;
  if (number < 0) throw nb::value_error(("unknown metric kind: " + kind).c_str());
  const uint32_t id = bragg_metric(name.c_str(), unit.c_str(), number, is_float);
  if (id == UINT32_MAX) throw nb::value_error(("metric " + name + " exists with another type, kind or unit").c_str());
  if (id >= metric_is_float().size()) metric_is_float().resize(id + 1);
  metric_is_float()[id] = is_float;
  return id;
}

void add_vector(uint32_t metric, nb::sequence values) {
  std::vector<uint64_t> bits;
  for (const nb::handle value : values) bits.push_back(metric_bits(metric, value));
  const auto length = static_cast<uint32_t>(bits.size());  // what `len` says may not be true
  for (uint32_t index = 0; index < length; ++index) bragg_add_value(metric, bits[index], index, length);
}

int dtype_of(const std::string& name) {
  constexpr std::array kNames{"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "bool"};  // bragg_dtype
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) throw nb::value_error(("unknown dtype: " + name).c_str());
  return static_cast<int>(found - kNames.begin());
}

void add_device_value(uint32_t metric, uint64_t pointer, const std::string& dtype, uint32_t length, int64_t stride,
                      uint64_t stream) {
  const int number = dtype_of(dtype);
  char reason[256] = "";
  int failed = 0;
  {
    const nb::gil_scoped_release no_gil;  // the driver waits while the stream's queue is full
    failed = bragg_add_device_value(metric, pointer, number, length, stride, reinterpret_cast<void*>(stream), reason,
                                    sizeof reason);
  }
  if (failed != 0) throw std::runtime_error(reason);
}

const void* handle_of(uint64_t function) { return reinterpret_cast<const void*>(function); }

void name_kernel(uint64_t function, const std::optional<std::string>& name, const std::string& symbol,
                 const std::vector<std::pair<std::string, std::string>>& attributes) {
  std::vector<const char*> texts;
  for (const auto& [key, value] : attributes) {
    texts.push_back(key.c_str());
    texts.push_back(value.c_str());
  }
  bragg_name_kernel(handle_of(function), name ? name->c_str() : nullptr, symbol.c_str(), texts.data(),
                    static_cast<uint32_t>(attributes.size()));
}

void expect_launch(uint64_t function, const std::optional<std::string>& name,
                   const std::vector<std::pair<uint32_t, nb::object>>& values) {
  std::vector<uint32_t> metrics;
  std::vector<uint64_t> bits;
  for (const auto& [metric, value] : values) {
    metrics.push_back(metric);
    bits.push_back(metric_bits(metric, value));
  }
  bragg_expect_launch(handle_of(function), name ? name->c_str() : nullptr, metrics.data(), bits.data(),
                      static_cast<uint32_t>(metrics.size()));
}

void enter_state(const std::string& name) {
  bragg_state_enter(bragg_state_frame(name.data(), static_cast<uint32_t>(name.size())));
}

void enter_host_kernel(const std::string& name) {
  bragg_host_kernel_enter(bragg_host_kernel_frame(name.data(), static_cast<uint32_t>(name.size())));
}

}  // namespace

uint64_t metric_bits(uint32_t metric, nb::handle value) {
  if (metric >= metric_is_float().size()) throw nb::value_error("unknown metric id");
  const bool is_float = metric_is_float()[metric];
  const uint64_t bits = is_float ? std::bit_cast<uint64_t>(PyFloat_AsDouble(value.ptr()))
                                 : static_cast<uint64_t>(PyLong_AsLongLong(value.ptr()));
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return bits;
}

void bind_metrics(nb::module_& module) {
  module.def("metric", metric, "name"_a, "kind"_a = "inclusive", "unit"_a = "", "is_float"_a = true);
  module.def("add_value",
             [](uint32_t metric, nb::handle value) { bragg_add_value(metric, metric_bits(metric, value), 0, 0); });
  module.def("add_vector", add_vector);
  module.def("add_device_value", add_device_value, "metric"_a, "pointer"_a, "dtype"_a, "length"_a, "stride"_a,
             "stream"_a);
  module.def("name_kernel", name_kernel, "function"_a, "name"_a.none(), "symbol"_a = "",
             "attributes"_a = std::vector<std::pair<std::string, std::string>>{});
  module.def("expect_launch", expect_launch, "function"_a, "name"_a.none(),
             "values"_a = std::vector<std::pair<uint32_t, nb::object>>{});
  module.def("enter_state", enter_state, "name"_a);
  module.def("exit_state", bragg_state_exit);
  module.def("enter_host_kernel", enter_host_kernel, "name"_a);
  module.def("exit_host_kernel", bragg_host_kernel_exit);
}

}  // namespace bragg
