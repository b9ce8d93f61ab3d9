// An id that is found by whoever needs it first, and is the same whoever finds it.
#pragma once

#include <atomic>

#include "context/ids.h"

namespace bragg {

// Two threads may find it at once. A local static would let one of them wait, and all in the child of a fork that came
// while another thread was finding it.
template <Id T>
class FoundOnce {
 public:
  template <class Find>
  [[nodiscard]] T get(Find&& find) noexcept {
    T id = id_.load(std::memory_order_relaxed);
    if (id == T::None) id_.store(id = find(), std::memory_order_relaxed);
    return id;
  }

 private:
  std::atomic<T> id_{T::None};
};

}  // namespace bragg
