// Names of PyTorch's collectives: what is sent, and in which process group.
#pragma once

#include <cstdint>
#include <string>

namespace bragg::collective_names {

// The operator inside which PyTorch launches a collective. Its debug info says which one that is.
inline constexpr const char* kOperator = "record_param_comms";

// Finds the functions of PyTorch that tell it. False: this PyTorch has none, and the operator's name stays as it is.
[[nodiscard]] bool find(void* torch_library);

// "collective allreduce[1024 f32, group 0 of 8]": operation, elements of the input and their type, name and size of the
// process group. Empty: not known. Counts for `collective_progress`. Threads: the one on which the operator has just
// begun.
[[nodiscard]] std::string of_this_thread();

// The process group of the collective that this thread launches, as PyTorch calls it. Empty: it launches none.
[[nodiscard]] std::string group_of_this_thread();

}  // namespace bragg::collective_names
