// Which operator of PyTorch made a tensor: for each operator, where its inputs come from.
//
// An observer is told an operator's inputs and outputs as c10::IValue. Where these, tensors and lists of tensors keep
// what is read here is learned from one operator whose tensors are known, so that no release's layout is assumed. A
// tensor is known by its address and that of its memory, as either alone is soon reused.
#pragma once

#include <cstdint>

#include "context/thread_context.h"

namespace bragg::tensor_origins {

// Addresses, as Python tells them.
struct KnownTensor {
  uint64_t tensor = 0;
  uint64_t storage = 0;
  uint64_t data = 0;
};

// The operator from which all is learned has one input, a list of both tensors, beside one that is not a tensor, and
// one output. `running` is an at::RecordFunction at the begin and the end of it. Threads: one at a time.
void begin_learning(const KnownTensor& first, const KnownTensor& second) noexcept;
void learn_inputs(const void* running) noexcept;
void learn_outputs(const void* running) noexcept;
// False: nothing fits, or more than one thing does.
[[nodiscard]] bool end_learning(const KnownTensor& output) noexcept;

// Threads: the program's, each for itself.
void note_inputs(ThreadContext& thread, const void* running, ContextNodes consumer) noexcept;
void note_outputs(const void* running, ContextNodes producer) noexcept;
// Tensors may have been made that no operator reported: none is known any more.
void forget_all() noexcept;

}  // namespace bragg::tensor_origins
