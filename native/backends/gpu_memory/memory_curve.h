// How the memory of a device was used over a phase: a curve of bounded size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/json.h"

namespace bragg {

// Bins of equal width; where the phase outgrows them, each two become one.
class MemoryCurve {
 public:
  // From `time_ns` on so many bytes, where `before` were allocated until then.
  void take(int64_t time_ns, uint64_t before, uint64_t allocated, uint64_t reserved) {
    if (start_ns_ == 0) start_ns_ = time_ns;
    const int64_t since_ns = std::max<int64_t>(time_ns - start_ns_, 0);
    while (since_ns >> bin_bits_ >= static_cast<int64_t>(kMostBins)) halve();
    const auto bin = static_cast<size_t>(since_ns >> bin_bits_);
    while (bins_.size() <= bin) bins_.push_back({before, before, bins_.empty() ? reserved : bins_.back().reserved});
    bins_[bin].least = std::min(bins_[bin].least, allocated);
    bins_[bin].most = std::max(bins_[bin].most, allocated);
    bins_[bin].reserved = std::max(bins_[bin].reserved, reserved);
  }

  [[nodiscard]] std::string json() const {
    JsonObject json;
    json.put("start_ns", start_ns_).put("bin_ns", int64_t{1} << bin_bits_);
    const auto put = [&](const char* name, uint64_t Bin::* column) {
      json.raw(name, json_array(bins_, [column](const Bin& bin) { return std::to_string(bin.*column); }));
    };
    put("least_bytes", &Bin::least);
    put("most_bytes", &Bin::most);
    put("reserved_bytes", &Bin::reserved);
    return json.text();
  }

 private:
  static constexpr size_t kMostBins = 512;  // 12 KB; after its first half second a phase has 256 at least
  struct Bin {
    uint64_t least;  // allocated
    uint64_t most;
    uint64_t reserved;
  };
  void halve() {
    if (bins_.size() % 2 != 0) bins_.push_back(bins_.back());
    for (size_t i = 0; i < bins_.size() / 2; ++i) {
      const Bin& one = bins_[2 * i];
      const Bin& other = bins_[2 * i + 1];
      bins_[i] = {std::min(one.least, other.least), std::max(one.most, other.most),
                  std::max(one.reserved, other.reserved)};
    }
    bins_.resize(bins_.size() / 2);
    ++bin_bits_;
  }

  int64_t start_ns_ = 0;  // 0: nothing was taken
  int bin_bits_ = 20;     // a bin is 2^20 ns wide: 1 ms
  std::vector<Bin> bins_;
};

}  // namespace bragg
