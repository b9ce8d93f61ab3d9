#include "cupti/optional_symbol.h"

#include <string>

#include "cupti/version.h"
#include "settings.h"

namespace bragg::fake {

bool has_symbol(const char* name, uint32_t since_version) {
  if (emulated_release().api_version < since_version) return false;
  const std::string omitted = std::string(",").append(setting("OMIT", "")).append(",");
  return omitted.find(std::string(",").append(name).append(",")) == std::string::npos;
}

}  // namespace bragg::fake
