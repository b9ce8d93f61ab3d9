// PyTorch's operators, and which of them the nodes of its autograd engine belong to.
//
// A node is numbered when an operator creates it: by a counter of the thread, beside the thread's own number. The
// counter is read whenever an operator begins or ends: nodes that came meanwhile belong to the innermost one that was
// open, and where that stands in the tree is kept for each of them. When the engine evaluates a node, on whatever
// thread, what runs stands below that place and `[backward]`.
#pragma once

#include <cstdint>
#include <string_view>

#include "context/frame_table.h"

namespace bragg {

class ThreadContext;
enum class Source : uint32_t;
using EntryOwner = const void*;

namespace autograd {

enum class TaskKind : uint8_t {
  Other,
  Operator,
  Node,                // the engine evaluates a node
  Gradient,            // it adds up the gradient of a parameter, right after the node that computed it
  NodeWithoutForward,  // one that no operator creates: the root of the graph
};
[[nodiscard]] TaskKind kind_of(std::string_view operator_name) noexcept;
// What the engine evaluates: the name of a node. Empty: the operator is not a range of the engine.
[[nodiscard]] std::string_view evaluated_by(std::string_view operator_name) noexcept;

// Threads: the program's, each for itself.
void begin(ThreadContext& thread, Source source, FrameId frame, TaskKind kind, EntryOwner owner) noexcept;
void end(ThreadContext& thread, Source source, EntryOwner owner) noexcept;
// The same for ranges that nest, whose cost counts as that of operators.
void begin_range(Source source, FrameId frame, TaskKind kind) noexcept;
void end_range(Source source) noexcept;

// Functions of PyTorch, and where its nodes keep their numbers. From 2.13 on nodes count their references themselves.
struct Engine {
  uint64_t (*next_number)() = nullptr;
  uint64_t (*thread_number)() = nullptr;
  void* current_node = nullptr;  // returns a std::shared_ptr, or a c10::intrusive_ptr; as this differs, its address
  bool counts_references_itself = false;
  uint32_t number_offset = 0;
  uint32_t thread_offset = 0;
};
void follow(const Engine& engine) noexcept;  // the first one stays: a process has one PyTorch

// Finds the functions in a library that is loaded. False: it lacks one, or this thread has another number there.
// Threads: one at a time.
[[nodiscard]] bool follow(const char* library, Engine engine, uint64_t expected_thread_number) noexcept;

}  // namespace autograd
}  // namespace bragg
