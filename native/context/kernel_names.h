// What kernels are called in profiles, by the driver's function handle: compilers know more of a kernel than its
// symbol.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "context/frame_table.h"

namespace bragg {

// Threads: `find` from any thread, callbacks included, lock-free; the others take a mutex.
class KernelNames {
 public:
  static KernelNames& instance();

  struct Attribute {
    std::string key;
    std::string value;
  };

  // Launches of `function` whose symbol is `symbol` ("": whatever it is) are shown as `name` from now on. A handle is
  // reused after its module was unloaded: the symbol guards against a name that is no longer meant.
  void set(const void* function, std::string_view name, std::string_view symbol, std::vector<Attribute> attributes);
  void forget(const void* function);

  // None: the kernel goes by its symbol.
  [[nodiscard]] StringId find(const void* function) const noexcept;
  [[nodiscard]] bool fits(StringId name, std::string_view symbol);
  // Gives a kernel's frame what is known of its name.
  void describe(FrameId frame, StringId name);

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Slot {
    std::atomic<const void*> function{nullptr};  // never removed; a forgotten one has no name
    std::atomic<StringId> name{StringId::None};
  };
  struct Table {
    explicit Table(size_t capacity) : mask(capacity - 1), slots(new Slot[capacity]) {}
    size_t mask;
    std::unique_ptr<Slot[]> slots;
  };
  static Slot& slot_of(const Table& table, const void* function) noexcept;
  void store(const void* function, StringId name);  // mutex held

  std::mutex mutex_;
  std::atomic<const Table*> table_{nullptr};
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is current; readers may still be in the others
  size_t used_ = 0;
  struct Description {
    std::string symbol;
    std::vector<Attribute> attributes;
  };
  std::unordered_map<StringId, Description> descriptions_;
};

}  // namespace bragg
