// Names of C++ symbols as people write them.
#pragma once

#include <string>

namespace bragg {

// A symbol that is not C++, or that the runtime cannot read, as it is.
[[nodiscard]] std::string demangled(const char* symbol);

}  // namespace bragg
