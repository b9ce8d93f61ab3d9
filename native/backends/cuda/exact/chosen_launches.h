// Which launches are measured exactly: of the kernels that a regular expression finds, the first ones of each shape.
#pragma once

#include <regex.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backends/cuda/driver/cupti_abi.h"
#include "backends/cuda/exact/range_profiler.h"

namespace bragg {

// A kernel's launch as the driver's callback shows it.
struct KernelLaunch {
  const void* context = nullptr;
  const void* function = nullptr;   // nullptr: a call that launches no single kernel, or an old one
  const char* symbol = "";          // mangled
  std::array<uint32_t, 7> shape{};  // grid, block, bytes of dynamic shared memory
  bool is_cooperative = false;
};
[[nodiscard]] KernelLaunch kernel_launch(uint32_t cbid, const cupti::CallbackData& data) noexcept;

// Why a launch that was chosen is not measured.
enum class NotMeasured : uint8_t {
  No,             // it is
  Cooperative,    // its blocks wait for each other
  Communicates,   // it waits for other GPUs
  Captured,       // a stream is being captured: waiting would break the capture
  LaunchedBeside  // another thread was in a launch, or launched meanwhile
};
[[nodiscard]] const char* name_of(NotMeasured why);

// Threads: one at a time.
class ChosenLaunches {
 public:
  struct Kernel {
    bool is_chosen = false;
    std::vector<uint32_t> measured{0};  // launches, or rounds of passes, by set of counters
    std::vector<RangePasses> passes;    // by set; of the thread that counts a launch
    bool has_begun = false;             // a launch was counted
    NotMeasured why = NotMeasured::No;  // the last launch was not

    // The set that was measured least; of several the one that was counted last, as another one takes longer.
    [[nodiscard]] size_t next_set(size_t last) const;
  };

  // `pattern`: a POSIX extended regular expression. What is wrong with it; "": nothing.
  [[nodiscard]] std::string choose(const std::string& pattern, uint32_t launches);
  // nullptr: it is not to be measured. `name`: that a framework has given the kernel, or "".
  [[nodiscard]] Kernel* find(const KernelLaunch& launch, std::string_view name);
  [[nodiscard]] uint64_t measured_kernels() const;  // each shape counts
  [[nodiscard]] uint64_t incomplete_kernels()
      const;  // launched too seldom: some sets or passes were measured and some were not
  // By reason, how many kernels were chosen and never measured.
  [[nodiscard]] std::string not_measured_json() const;

 private:
  using Key = std::tuple<const void*, const void*, const char*, std::array<uint32_t, 7>>;
  struct FreePattern {
    void operator()(regex_t* pattern) const {
      regfree(pattern);
      delete pattern;
    }
  };

  [[nodiscard]] bool is_found_in(const std::string& text) const;
  [[nodiscard]] Kernel look_at(const KernelLaunch& launch, std::string_view name) const;

  std::unique_ptr<regex_t, FreePattern> pattern_;
  uint32_t launches_ = 0;
  std::map<Key, Kernel> kernels_;
};

}  // namespace bragg
