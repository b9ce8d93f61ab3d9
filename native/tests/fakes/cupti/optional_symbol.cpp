#include "cupti/optional_symbol.h"

#include <string>

#include "cupti/version.h"
#include "settings.h"

namespace bragg::fake {

bool has_symbol(const char* name, uint32_t since_version) {
  if (emulated_release().api_version < since_version) return false;
  const std::string omitted = "," + setting("OMIT", "") + ",";
  return omitted.find("," + std::string(name) + ",") == std::string::npos;
}

}  // namespace bragg::fake
