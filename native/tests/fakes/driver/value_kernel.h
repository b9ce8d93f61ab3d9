// What bragg's kernel that reads metric values does, for it must run here too.
#pragma once

#include "link.h"

namespace bragg::fake {

[[nodiscard]] bool is_value_kernel(const Operation& operation) noexcept;
[[nodiscard]] value_kernel::Parameters reading_of(void** arguments) noexcept;
void read_values(const value_kernel::Parameters& reading) noexcept;

}  // namespace bragg::fake
