// The contextvars context that the calling thread runs in, and the scope that it inherits: read from the interpreter's
// own objects, as frames are (python_frames.h): no GIL, no reference counts, no allocation.
//
// asyncio, trio and anyio run each task in a context of its own, which is a copy of the one that made the task.
#pragma once

#include <cstdint>
#include <optional>

#include "context/python_frames.h"

namespace bragg {

// Threads: its own; a context can be entered by one thread only.
struct PythonContext {
  const void* id = nullptr;        // nullptr: none was entered, which is all of a program without tasks
  const void* previous = nullptr;  // what was left when it was entered, maybe none that had been entered
  friend bool operator==(const PythonContext&, const PythonContext&) = default;
};

[[nodiscard, gnu::visibility("default")]] PythonContext current_python_context() noexcept;
[[nodiscard]] PythonContext left_for(const PythonContext& entered) noexcept;

// The variable whose value tells a copy of a context in which scope it was made: bytes, 8 of them or none.
struct ScopeVariable {
  const void* variable = nullptr;  // nullptr: unknown, nothing is inherited
  uint32_t hash = 0;               // as the mapping of a context folds it
  // Types of the nodes of such a mapping: 32 children behind a bitmap, or behind an array.
  const void* bitmap_type = nullptr;
  const void* array_type = nullptr;
};
// Once: the import of the extension module.
[[gnu::visibility("default")]] void set_scope_variable(const ScopeVariable& variable) noexcept;

// Its value in a context that this thread has entered; empty where it has none. GIL not needed.
[[nodiscard, gnu::visibility("default")]] std::optional<uint64_t> inherited_scope(const void* context) noexcept;

}  // namespace bragg
