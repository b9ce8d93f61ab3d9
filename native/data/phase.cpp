#include "data/phase.h"

#include <algorithm>

#include "context/calling_context_tree.h"
#include "context/hash.h"
#include "data/json.h"

namespace bragg {
namespace {

constexpr uint32_t kMaxKernelConfigs = 1u << 14;
// A graph's further records come within this time of each other; later ones are counted in a later phase.
constexpr int64_t kQuietNs = 100'000'000;
// Launches into a stream capture and failed ones never have a record.
constexpr int64_t kGiveUpNs = 30'000'000'000;

}  // namespace

Phase::Phase(SessionOptions options, uint32_t slot, uint32_t session)
    : activity(options.folds_idle),
      options_(std::move(options)),
      slot_(slot),
      session_(session),
      origin_(std::make_shared<Origin>(
          Origin{.part_path = options_.part_path, .meta_json = options_.meta_json, .first_correlation = {}})) {
  options_.of_sources.phase = slot;
  if (options_.rotate_interval_ms == 0) return;
  rotates_at_ns_ = started_ns_;
  postpone_rotation();
}

int Phase::open() {
  if (const int error = writer_.open(options_.part_path)) return error;
  write_json(options_.meta_json);
  return writer_.write_out();
}

size_t Phase::KernelConfigHash::operator()(const KernelConfig& config) const noexcept {
  uint64_t hash = 1;
  for (const uint32_t field : config.fields) hash = mix(hash, field);
  return hash;
}

void Phase::count_kernel(const KernelConfig& config) {
  uint32_t& last = last_row_of_frame_[FrameId{config.fields[0]}];
  if (last == kNone || kernels_[last].config != config) {
    const auto found = kernel_rows_.find(config);
    if (found == kernel_rows_.end()) {
      if (kernels_.all().size() == kMaxKernelConfigs) {
        ++refused_configs_;
        return;
      }
      last = kernels_.append({config});
      kernel_rows_.emplace(config, last);
    } else {
      last = found->second;
    }
  }
  ++kernels_.change(last).count;
}

void Phase::drop_slices() {
  counters.dropped_slices += slices_.size() + counter_samples_.size();
  slices_.clear();
  counter_samples_.clear();
  clock_readings_.clear();
}

void Phase::note_launch(CorrelationId correlation, const Launch& launch) {
  awaited_of(launch).add(launch.round);
  has_open_ended_ |= launch.keeps;
  first_correlation_.note(correlation);
  origin_->first_correlation.note(correlation);
}

void Phase::note_record(const Launch& launch) {
  if (launch.records == 1) awaited_of(launch).remove(launch.round);
  if (is_retired()) last_record_ns_ = now_ns();
}

bool Phase::is_older(const DeviceEvent& event) const {
  if (event.correlation == CorrelationId::None) return false;
  if (!origin_->first_correlation.is_known()) return event.start_ns < origin_->started_ns;
  return origin_->first_correlation.is_after(event.correlation);
}

bool Phase::starts_after(CorrelationId correlation) const {
  return !first_correlation_.is_known() || first_correlation_.is_after(correlation);
}

uint64_t Phase::missing_records() const {
  const uint64_t kernels = awaited_.kernels.given_up();
  return kernels == 0 ? 0 : kernels + awaited_.others.given_up();
}

void Phase::follow(const Phase& phase_before) {
  origin_ = phase_before.origin_;
  phase_ = phase_before.phase_ + 1;
}

void Phase::postpone_rotation() { rotates_at_ns_ += int64_t{options_.rotate_interval_ms} * 1'000'000; }

// 4711.part -> 4711.part_1.part
std::string Phase::next_part_path() const {
  constexpr std::string_view kSuffix = ".part";
  const std::string_view path = origin_->part_path;
  const size_t stem = path.ends_with(kSuffix) ? path.size() - kSuffix.size() : path.size();
  return std::string(path.substr(0, stem)) + ".part_" + std::to_string(phase_ + 1) + std::string(kSuffix);
}

std::string Phase::next_meta_json() const {
  const std::string& first = origin_->meta_json;
  // What the program had run when the session began says nothing of a phase.
  const std::string own = JsonObject()
                              .put("phase", phase_ + 1)
                              .put("started_ns", now_ns())
                              .raw("scheduled_before", "null")
                              .raw("program_ran_before_ns", "null")
                              .text();
  return first == "{}" ? own : first.substr(0, first.size() - 1) + "," + own.substr(1);  // the later key counts
}

void Phase::retire(const ThreadTotals& totals, std::string end_meta_json) {
  retired_ns_ = last_record_ns_ = now_ns();
  after = totals;
  end_meta_json_ = std::move(end_meta_json);
}

bool Phase::is_drained(int64_t flushed_ns) const {
  if (awaited_count() == 0 && !has_open_ended_) return true;
  return flushed_ns - last_record_ns_ > (awaited_count() == 0 ? kQuietNs : kGiveUpNs);
}

}  // namespace bragg
