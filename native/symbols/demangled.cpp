#include "symbols/demangled.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace bragg {

std::string demangled(const char* symbol) {
  if (!std::string_view(symbol).starts_with("_Z")) return symbol;  // `i` would be `int`
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr),
                                                         &std::free);
  return name != nullptr ? name.get() : symbol;
}

}  // namespace bragg
