#include "bindings/python_frames_binding.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include "api/bragg_core.h"
#include "bindings/python_layout.h"
#include "context/code_location.h"
#include "context/python_frames.h"

namespace nb = nanobind;

namespace bragg {
namespace {

// This thread's frames by the public API, innermost first.
std::vector<ExpectedFrame> interpreter_frames() {
  std::vector<ExpectedFrame> frames;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* current = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    frames.push_back({code.ptr(), std::max(PyFrame_GetLineNumber(current), 0)});
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  return frames;
}

// Sets the layout, and withdraws it if the walk then differs from what the interpreter says about the caller.
void install_layout() {
  PythonLayout layout;
  bragg_fill_python_layout(&layout);
  set_python_layout(layout);
  const std::vector<ExpectedFrame> expected = interpreter_frames();
  if (!python_walk_matches(expected.data(), expected.size())) set_python_layout(PythonLayout{});
}

using Location = std::tuple<std::string, std::string, int>;

std::vector<Location> walk() {
  const nb::gil_scoped_release no_gil;
  std::vector<Location> locations;
  PythonFrameIterator frames;
  for (RawFrame frame{}; frames.next(frame);) {
    CodeLocation place = describe(frame);
    locations.emplace_back(std::move(place.qualified_name), std::move(place.file), place.line);
  }
  return locations;
}

int line_of_code(nb::handle code, uint32_t instruction_offset) {
  if (!PyCode_Check(code.ptr())) throw nb::type_error("a code object is needed");
  return line_of({code.ptr(), instruction_offset, nullptr});
}

double walk_ns(uint32_t repetitions) {
  uintptr_t checksum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < repetitions; ++i) {
    PythonFrameIterator frames;
    for (RawFrame frame{}; frames.next(frame);)
      checksum += reinterpret_cast<uintptr_t>(frame.code) ^ frame.instruction_offset;
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  asm volatile("" : : "r"(checksum));
  return elapsed.count() / repetitions;
}

}  // namespace

void bind_python_frames(nb::module_& module) {
  install_layout();
  bragg_set_interpreter(reinterpret_cast<const void*>(&PyEval_GetFrame));
  module.def("_walk_available", &python_walk_available);
  module.def("_walk", &walk);
  module.def("_line_of", &line_of_code, nb::arg("code"), nb::arg("instruction_offset"));
  module.def("_walk_ns", &walk_ns, nb::arg("repetitions"));
}

}  // namespace bragg
