// A function that a loaded library calls in another one, replaced: its entry in the library's table of imports.
#pragma once

#include <atomic>
#include <string>

namespace bragg {

// From now on `library` calls `replacement` instead of `symbol`. `original` gets what it called before, and gets it
// first, since other threads may call at once. False: it imports no such function, or its table cannot be written.
// Never undone.
[[nodiscard]] bool replace_imported_function(const std::string& library, const char* symbol, void* replacement,
                                             std::atomic<void*>& original);

}  // namespace bragg
