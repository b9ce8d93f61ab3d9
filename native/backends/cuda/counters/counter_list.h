// Which counters a GPU has: what `bragg doctor --counters` prints.
#pragma once

#include <string>

namespace bragg {

// JSON of the first GPU: its chip, our counters with the metrics that tell them in one pass, the sets with the passes
// that they take together, and CUPTI's own metrics of one pass. `reason`: why there is nothing. Takes some seconds.
// Call it in a separate process, which has no context yet.
[[nodiscard]] std::string counter_list_json(const std::string& library_candidates);

}  // namespace bragg
