// A value for each id: a vector, since ids are dense, that grows as they come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "context/hash.h"

namespace bragg {

template <class T, class Value>
class PerId {
 public:
  explicit PerId(Value initial = {}) : initial_(initial) {}

  [[nodiscard]] Value& operator[](T id) {
    const size_t i = bits_of(id);
    if (i >= values_.size()) values_.resize(std::max({i + 1, values_.size() * 2, kFirstSize}), initial_);
    return values_[i];
  }
  [[nodiscard]] Value find(T id) const { return bits_of(id) < values_.size() ? values_[bits_of(id)] : initial_; }

 private:
  static constexpr size_t kFirstSize = 256;
  Value initial_;
  std::vector<Value> values_;
};

}  // namespace bragg
