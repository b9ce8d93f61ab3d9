#include "data/sample_attribution.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bragg {
namespace {

constexpr uint32_t kMaxWindows = 8;  // that a sample waits for its launch: 4 s

Code code_of(const PcSample& sample) { return {sample.cubin_crc, sample.function}; }

// Shares of whole samples. What rounding takes from a share it gets with the next rows: otherwise rows of one sample
// each would all go to the largest share.
class Apportionment {
 public:
  explicit Apportionment(size_t shares) : owed_(shares), order_(shares) {}

  // `parts`: of 1.
  void share(uint64_t count, const std::vector<double>& parts, std::vector<uint64_t>& given) {
    uint64_t left = count;
    for (size_t i = 0; i < parts.size(); ++i) {
      owed_[i] += static_cast<double>(count) * parts[i];
      order_[i] = i;
    }
    std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) { return owed_[a] > owed_[b]; });
    for (const size_t i : order_) {
      given[i] = std::min(left, static_cast<uint64_t>(std::max(0.0, std::floor(owed_[i]))));
      left -= given[i];
      owed_[i] -= static_cast<double>(given[i]);
    }
    std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) { return owed_[a] > owed_[b]; });
    for (size_t next = 0; left > 0; next = (next + 1) % order_.size(), --left) {
      ++given[order_[next]];
      owed_[order_[next]] -= 1;
    }
  }

 private:
  std::vector<double> owed_;
  std::vector<size_t> order_;
};

}  // namespace

void SampleAttribution::add(const SampledKernel& kernel) {
  kernels_[{kernel.cubin_crc, kernel.function}][kernel.target] += kernel.weight;
  if (kernel.correlation != CorrelationId::None) launches_[kernel.correlation] = kernel.target;
}

void SampleAttribution::add(const PcSample& sample) {
  if (sample.correlation != CorrelationId::None) {
    serial_.push_back({sample});
  } else {
    waiting_[code_of(sample)][{sample.pc_offset, sample.reason}] += sample.count;
  }
}

// Kernels whose cubin is not known may be of any. Those that ran while nothing was sampled have no share, unless that
// leaves none: clocks and the moment when sampling begins are not that exact.
std::vector<SampleAttribution::Share> SampleAttribution::shares_of(const Code& code) const {
  for (const auto* kernels : {&kernels_, &kernels_before_}) {
    Shares found;
    for (const uint64_t crc : {code.cubin_crc, uint64_t{0}})
      if (const auto of_code = kernels->find({crc, code.function}); of_code != kernels->end())
        for (const auto& [target, weight] : of_code->second) found[target] += weight;
    if (found.empty()) continue;
    const bool any_sampled = std::ranges::any_of(found, [](const auto& each) { return each.second > 0; });
    std::vector<Share> shares;
    for (const auto& [target, weight] : found)
      if (weight > 0 || !any_sampled) shares.push_back({target, weight});
    return shares;
  }
  return {};
}

const SampleTarget* SampleAttribution::target_of(CorrelationId correlation) const {
  for (const auto* launches : {&launches_, &launches_before_})
    if (const auto found = launches->find(correlation); found != launches->end()) return &found->second;
  return nullptr;
}

void SampleAttribution::settle_serial(const Give& give) {
  std::vector<Serial> later;
  for (Serial& serial : serial_) {
    const PcSample& sample = serial.sample;
    if (const SampleTarget* target = target_of(sample.correlation)) {
      give(target, code_of(sample), sample, sample.count, true);
    } else if (++serial.windows < kMaxWindows) {
      later.push_back(serial);
    } else {
      waiting_[code_of(sample)][{sample.pc_offset, sample.reason}] += sample.count;
    }
  }
  serial_ = std::move(later);
}

void SampleAttribution::settle(const Give& give) {
  settle_serial(give);
  for (auto code = waiting_.begin(); code != waiting_.end();) {
    const std::vector<Share> shares = shares_of(code->first);
    if (shares.empty()) {
      ++code;
      continue;
    }
    double total = 0;
    for (const Share& share : shares) total += share.weight;
    std::vector<double> parts;
    for (const Share& share : shares)
      parts.push_back(total > 0 ? share.weight / total : 1.0 / static_cast<double>(shares.size()));
    Apportionment apportionment(shares.size());
    std::vector<uint64_t> given(shares.size());
    for (const auto& [place, count] : code->second) {
      apportionment.share(count, parts, given);
      const PcSample sample{code->first.cubin_crc, code->first.function, place.second,
                            place.first,           CorrelationId::None,  count};
      for (size_t i = 0; i < shares.size(); ++i)
        if (given[i] > 0) give(&shares[i].target, code->first, sample, given[i], shares.size() == 1);
    }
    code = waiting_.erase(code);
  }
  kernels_before_ = std::exchange(kernels_, {});
  launches_before_ = std::exchange(launches_, {});
}

void SampleAttribution::give_up(const Give& give) {
  for (const Serial& serial : serial_) give(nullptr, code_of(serial.sample), serial.sample, serial.sample.count, false);
  serial_.clear();
  for (const auto& [code, counts] : waiting_)
    for (const auto& [place, count] : counts)
      give(nullptr, code, {code.cubin_crc, code.function, place.second, place.first, CorrelationId::None, count}, count,
           false);
  waiting_.clear();
}

void SampleAttribution::forget(uint32_t slot) {
  const auto is_gone = [slot](const auto& entry) { return entry.first.slot == slot; };
  for (auto* kernels : {&kernels_, &kernels_before_})
    for (auto& [code, shares] : *kernels) std::erase_if(shares, is_gone);
  for (auto* launches : {&launches_, &launches_before_})
    std::erase_if(*launches, [slot](const auto& entry) { return entry.second.slot == slot; });
}

}  // namespace bragg
