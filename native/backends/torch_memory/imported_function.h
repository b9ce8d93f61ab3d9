// A function that a loaded library calls in another one, replaced: its entry in the library's table of imports.
#pragma once

#include <atomic>
#include <string>

namespace bragg {

// From now on `library` calls `replacement` instead of `symbol`; what it called before is in `original` first, as calls
// of other threads come at once. False: it imports no such function, or its table cannot be written. Never undone.
[[nodiscard]] bool replace_imported_function(const std::string& library, const char* symbol, void* replacement,
                                             std::atomic<void*>& original);

}  // namespace bragg
