// Objects a program creates and destroys through handles. What it does not destroy stays owned, as in the real driver.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace bragg::fake {

// Threads: any.
template <class T>
class Owned {
 public:
  T* add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  // False if there is no such object (any more).
  bool destroy(T* handle) {
    const std::lock_guard lock(mutex_);
    return objects_.erase(handle) == 1;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<T*, std::unique_ptr<T>> objects_;
};

// All objects of one kind. Never destroyed: threads may still run when the process exits.
template <class T>
Owned<T>& owned() {
  static Owned<T>& objects = *new Owned<T>;
  return objects;
}

}  // namespace bragg::fake
