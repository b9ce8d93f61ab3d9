// PyTorch's operators, from the observers that its library calls at the begin and end of each (at::RecordFunction).
// Its functions are found in the loaded library, so stock wheels of any release work. A trial on one operator shows
// whether the functions and their types are what is expected.
#pragma once

#include <string>

#include "context/frame_table.h"
#include "intake/autograd.h"
#include "intake/tensor_origins.h"

namespace bragg::record_function {

// Observes this thread alone until `end_trial`; what that sees is recorded nowhere. Returns why it cannot, or nothing.
// Threads: one at a time, as for all below.
[[nodiscard]] std::string begin_trial(const char* library);
// The thread ran one operator since, called `operator_name`. Returns what was not as it should be, or nothing.
[[nodiscard]] std::string end_trial(const char* operator_name);

// A trial of how operators pass their tensors, on one operator between the two calls, as `tensor_origins` needs it.
// False: they do not as expected.
void begin_input_trial(const tensor_origins::KnownTensor& first, const tensor_origins::KnownTensor& second);
[[nodiscard]] bool end_input_trial(const tensor_origins::KnownTensor& output);

// All threads, from now on, after a trial that went well. Operators that are open when it ends keep their end. False:
// without the shapes that are wanted, as this PyTorch does not tell them or somebody observes without them already.
// With shapes, and where it was learned, the operators that made an operator's inputs are recorded too.
[[nodiscard]] bool observe(bool with_shapes) noexcept;
void stop_observing() noexcept;

// Whether an annotation of PyTorch, which the program switched on, repeats an operator that was just observed.
// Threads: the program's, each for itself.
[[nodiscard]] bool is_told(FrameId frame, autograd::TaskKind kind) noexcept;

// Whether operators name the collectives of PyTorch.
[[nodiscard]] bool names_collectives() noexcept;

}  // namespace bragg::record_function
