// The facts of a capture's META, and which of them changed since they were last written.
#pragma once

#include <map>
#include <string>

#include "data/json.h"

namespace bragg {

// A later META updates an earlier one, fact by fact. Threads: the session's.
class ChangingMeta {
 public:
  [[nodiscard]] JsonObject take_changes(const JsonObject& facts) {
    JsonObject changes;
    for (const auto& [key, json] : facts.members()) {
      std::string& written = written_[key];
      if (written == json) continue;
      written = json;
      changes.raw(key, json);
    }
    return changes;
  }
  void forget_written() { written_.clear(); }

 private:
  std::map<std::string, std::string> written_;
};

}  // namespace bragg
