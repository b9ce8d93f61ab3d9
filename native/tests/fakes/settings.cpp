#include "settings.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

namespace bragg::fake {
namespace {

struct KnobRow {
  const char* name;
  int64_t initial;
};
constexpr KnobRow kKnobs[] = {
    {"devices", 2},
    {"call_ns", 800},
    {"kernel_ns", 1000},
    {"module_load_ms", 0},
    {"vary_ns", 100},
    {"real_clock", 0},
    {"completion_order", -1},
    {"flush_on_caller", 0},
    {"flush_delay_ms", 0},
    {"waiting_flush_ms", 15},
    {"hardware_trace", 0},
    {"late_ms", 0},
    {"slot_taken", 0},
    {"no_sharing", 0},
    {"counters_busy", 0},
    {"sample_buffer", 0},
    {"pm_buffer", 0},
    {"pm_decode_ns", 0},
    {"pm_config_ms", 0},
    {"range_pass_metrics", 0},
    {"nvml_power_mw", 400'000},
    {"nvml_sm_mhz", 1755},
    {"nvml_reasons", 0},
    {"nvml_slow_ms", 0},
    {"nvml_busy_us", 0},
    {"drop_every", 0},
    {"duplicate_every", 0},
    {"reorder_every", 0},
    {"zero_correlation_every", 0},
    {"zero_timestamps_every", 0},
    {"unknown_end_every", 0},
    {"end_before_start_every", 0},
    {"foreign_every", 0},
};
constexpr size_t kKnobCount = static_cast<size_t>(Knob::kCount);
constexpr size_t kFirstFault = static_cast<size_t>(Knob::DropEvery);
static_assert(std::size(kKnobs) == kKnobCount);

struct Failures {
  std::mutex mutex;
  std::map<std::string, uint32_t, std::less<>> by_call;
};

Failures& failures() {
  static Failures& self = *new Failures;  // used until the process is gone
  return self;
}

void store(size_t index, int64_t value) {
  knob_values[index].store(value, std::memory_order_relaxed);
  const bool faults = std::any_of(std::begin(knob_values) + kFirstFault, std::end(knob_values),
                                  [](const auto& each) { return each.load(std::memory_order_relaxed) != 0; });
  record_faults_on.store(faults, std::memory_order_relaxed);
}

void read_failures(const std::string& text) {
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) continue;
    set_failure(part.substr(0, equals), static_cast<uint32_t>(std::stoul(part.substr(equals + 1))));
  }
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

[[gnu::constructor]] void read_environment() {
  for (size_t i = 0; i < kKnobCount; ++i) {
    const std::string text = setting(upper(kKnobs[i].name).c_str(), "");
    store(i, text.empty() ? kKnobs[i].initial : std::stoll(text));
  }
  if (setting("CLOCK", "virtual") == "real") store(static_cast<size_t>(Knob::RealClock), 1);
  read_failures(setting("FAIL", ""));
}

}  // namespace

std::atomic<int64_t> knob_values[kKnobCount];
std::atomic<bool> record_faults_on{false};
std::atomic<bool> failures_on{false};

void take_time(Knob milliseconds) {
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(knob(milliseconds)))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void take_cpu_time(int64_t ns) {
  const auto spent_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  if (ns <= 0) return;
  for (const int64_t until_ns = spent_ns() + ns; spent_ns() < until_ns;) {
  }
}

bool set_knob(std::string_view name, int64_t value) noexcept {
  const auto row =
      std::find_if(std::begin(kKnobs), std::end(kKnobs), [&](const auto& each) { return name == each.name; });
  if (row == std::end(kKnobs)) return false;
  store(static_cast<size_t>(row - std::begin(kKnobs)), value);
  return true;
}

void set_failure(std::string_view call, uint32_t result) {
  const std::lock_guard lock(failures().mutex);
  failures().by_call.insert_or_assign(std::string(call), result);
  failures_on.store(true, std::memory_order_release);
}

uint32_t ordered_failure(std::string_view call) {
  const std::lock_guard lock(failures().mutex);
  const auto found = failures().by_call.find(call);
  return found == failures().by_call.end() ? 0 : found->second;
}

std::string setting(const char* name, const char* fallback) {
  const char* value = std::getenv(("BRAGG_FAKE_" + std::string(name)).c_str());
  return value != nullptr ? value : fallback;
}

}  // namespace bragg::fake
