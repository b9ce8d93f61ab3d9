// Faults in activity records, as the knobs order them.
#pragma once

#include "cupti/records.h"

namespace bragg::fake {

enum class Fate { Keep, Drop, Duplicate, Hold, AfterForeign };

// Changes a record of a kernel, copy or set if it is its turn; says what becomes of it. Other records are kept.
[[nodiscard]] Fate apply_faults(RecordBytes& record) noexcept;

}  // namespace bragg::fake
