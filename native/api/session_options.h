// What a session records, out of the JSON object that carries it into every process of a run.
#pragma once

#include <string>
#include <string_view>

#include "api/bragg_core.h"

namespace bragg {

// Options that the object does not name keep their values; members that are not options of the core are for Python.
// Returns what is wrong with the object, or "".
[[nodiscard]] std::string read_session_options(std::string_view json, bragg_session_options& options);

}  // namespace bragg
