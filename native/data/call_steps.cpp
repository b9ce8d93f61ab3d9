#include "data/call_steps.h"

#include <algorithm>

#include "data/durations.h"

namespace bragg {

void CallSteps::Function::add(int64_t began_ns, int64_t now_ns, int64_t at_ns) {
  const int64_t lasted_ns = now_ns - began_ns;
  const int64_t step_ns = now_ns - (ended_ns != 0 ? ended_ns : began_ns);
  ended_ns = now_ns;
  called_ns += lasted_ns;
  longest_ns = std::max(longest_ns, lasted_ns);
  total_ns += step_ns;
  ++count;
  ++buckets[duration_bucket(static_cast<uint64_t>(step_ns))];
  if (ends_after_ns.empty()) began_at_ns = at_ns - lasted_ns;
  last_at_ns = std::max({at_ns, last_at_ns, began_at_ns});  // the clock may have been set back
  if (ends_after_ns.size() < kMaxFirst) ends_after_ns.push_back(last_at_ns - began_at_ns);
}

void CallSteps::begin() {
  for (auto& [name, function] : functions_) function.ended_ns = 0;
}

CallSteps::Function& CallSteps::function(std::string_view name) {
  const auto found = functions_.find(name);
  return found != functions_.end() ? found->second : functions_.try_emplace(std::string(name)).first->second;
}

}  // namespace bragg
