#include "backends/telemetry/gpu_telemetry.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "context/clock.h"

namespace bragg {
namespace {

using namespace gpu_quantity;

constexpr double kKib = 1024;
constexpr int64_t kLeastShare = 4;  // of the budget, for what is not in each reading
constexpr int64_t kPaidIn = 16;     // readings: what power took, which may be that of 20 readings
// Times of a clock that is held are worth most; utilization and memory change faster than the others.
constexpr std::array<double, 7> kTurnWeights{12, 1, 2, 2, 1, 1, 1};

// 32 hexadecimal digits as NVML writes them: GPU-01234567-89ab-...
std::string nvml_uuid(std::string_view kind, std::string digits) {
  for (const size_t at : {20, 16, 12, 8})
    if (digits.size() > at) digits.insert(at, 1, '-');
  return std::string(kind) + digits;
}

// Of a field whose value is a count; none: it is narrower than 64 bits, which wrap within one sample.
std::optional<uint64_t> wide_count(const nvml::FieldValue& told) {
  switch (told.type) {
    case nvml::ValueType::UnsignedLong:
    case nvml::ValueType::UnsignedLongLong:
    case nvml::ValueType::SignedLongLong:
      return told.value.u64;
    default:
      return std::nullopt;
  }
}

}  // namespace

GpuTelemetry::GpuTelemetry(const NvmlLibrary& library, uint32_t ordinal, std::string uuid)
    : library_(library), ordinal_(ordinal), uuid_(nvml_uuid("GPU-", uuid)), turns_(kTurnWeights) {
  if (uuid.empty()) {
    reason_ = "the CUDA driver does not tell the UUID of this GPU";
    return;
  }
  const nvml::Result result = library.handle_by_uuid(uuid_.c_str(), &device_);
  if (result != nvml::Result::Success) {
    device_ = nullptr;
    nvml::Device instance = nullptr;
    const bool is_mig = library.handle_by_uuid(nvml_uuid("MIG-", uuid).c_str(), &instance) == nvml::Result::Success;
    reason_ = is_mig ? "it is an instance of MIG: NVML measures whole GPUs" : library.failure(result);
    return;
  }
  has_energy_ = library.total_energy != nullptr;
  has_reasons_ = library.clock_reasons != nullptr;
  if (!has_energy_) refuse("energy_j", "this driver does not tell it");
  if (!has_reasons_) refuse("clock_reasons", "this driver does not tell them");
  kept_power_.emplace(library, device_, std::chrono::microseconds(0));
  if (library.field_values == nullptr) {
    for (const size_t quantity : {kPcieReceived, kPcieSent, kNvlinkReceived, kNvlinkSent})
      refuse(kGpuQuantities[quantity].name, "this driver does not tell it");
    averages_power_ = true;
    return;
  }
  power_ = {{nvml::Field::PowerNowMw, 0, kPower, false, {}}};
  pcie_ = {{nvml::Field::PcieReceivedBytes, 0, kPcieReceived, false, {}},
           {nvml::Field::PcieSentBytes, 0, kPcieSent, false, {}}};
  nvlink_ = {{nvml::Field::NvlinkReceivedKib, nvml::kAllLinks, kNvlinkReceived, false, {}},
             {nvml::Field::NvlinkSentKib, nvml::kAllLinks, kNvlinkSent, false, {}}};
}

void GpuTelemetry::refuse(std::string_view name, const std::string& why) { missing_.emplace_back(name, why); }

template <class Call>
bool GpuTelemetry::works(size_t quantity, Call&& call) {
  if (is_missing_[quantity]) return false;
  const nvml::Result result = call();
  if (result == nvml::Result::Success) return true;
  is_missing_[quantity] = true;
  refuse(kGpuQuantities[quantity].name, library_.failure(result));
  return false;
}

void GpuTelemetry::take_field(WantedField& wanted, const nvml::FieldValue& told, GpuReading& reading, int64_t read_ns) {
  const bool is_power = wanted.quantity == kPower;
  const std::optional<uint64_t> count = wide_count(told);
  if (told.result != nvml::Result::Success || (!is_power && !count)) {
    wanted.is_missing = true;
    if (is_power) {
      averages_power_ = true;
    } else {
      refuse(kGpuQuantities[wanted.quantity].name,
             told.result != nvml::Result::Success ? library_.failure(told.result) : "its counter is too narrow");
    }
  } else if (is_power) {
    reading.values[kPower] = static_cast<double>(count ? *count : told.value.u32) / 1e3;
  } else {
    const bool is_nvlink = wanted.scope == nvml::kAllLinks;
    reading.values[wanted.quantity] = wanted.rate.per_second(*count, read_ns) * (is_nvlink ? kKib : 1);
  }
}

void GpuTelemetry::read_fields(std::vector<WantedField>& fields, GpuReading& reading) {
  if (fields.empty()) return;
  std::vector<nvml::FieldValue> values;
  for (const WantedField& wanted : fields) values.push_back({wanted.field, wanted.scope, 0, 0, {}, {}, {}});
  const int64_t before_ns = monotonic_ns();
  const nvml::Result result = library_.field_values(device_, static_cast<int32_t>(values.size()), values.data());
  const int64_t read_ns = before_ns + (monotonic_ns() - before_ns) / 2;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (result != nvml::Result::Success) values[i].result = result;
    take_field(fields[i], values[i], reading, read_ns);
  }
  std::erase_if(fields, [](const WantedField& wanted) { return wanted.is_missing; });
}

void GpuTelemetry::read_power(std::vector<TimedReading>& readings, GpuReading& reading, int64_t time_ns) {
  if (keeps_power() && kept_power_->is_due(time_ns)) kept_power_->take(time_ns, readings);
  if (keeps_power()) return;
  read_fields(power_, reading);
  uint32_t milliwatts = 0;
  if (averages_power_ && library_.power_usage != nullptr &&
      works(kPower, [&] { return library_.power_usage(device_, &milliwatts); }))
    reading.values[kPower] = milliwatts / 1e3;
}

void GpuTelemetry::read_clock(size_t quantity, nvml::Clock clock, GpuReading& reading) {
  uint32_t mhz = 0;
  if (library_.clock_info != nullptr && works(quantity, [&] { return library_.clock_info(device_, clock, &mhz); }))
    reading.values[quantity] = mhz;
}

void GpuTelemetry::read_reasons(GpuReading& reading) {
  if (!has_reasons_) return;
  uint64_t reasons = 0;
  const nvml::Result result = library_.clock_reasons(device_, &reasons);
  has_reasons_ = result == nvml::Result::Success;
  if (has_reasons_)
    reading.clock_reasons = reasons;
  else
    refuse("clock_reasons", library_.failure(result));
}

void GpuTelemetry::read_utilization(GpuReading& reading) {
  nvml::Utilization busy{};
  if (library_.utilization == nullptr || !works(kUtilization, [&] { return library_.utilization(device_, &busy); }))
    return;
  reading.values[kUtilization] = busy.gpu_percent;
  reading.values[kMemoryUtilization] = busy.memory_percent;
}

void GpuTelemetry::read_memory(GpuReading& reading) {
  nvml::Memory memory{};
  if (library_.memory_info != nullptr && works(kMemoryUsed, [&] { return library_.memory_info(device_, &memory); }))
    reading.values[kMemoryUsed] = static_cast<double>(memory.used_bytes);
}

void GpuTelemetry::read_temperature(GpuReading& reading) {
  uint32_t celsius = 0;
  if (library_.temperature != nullptr &&
      works(kTemperature, [&] { return library_.temperature(device_, nvml::Sensor::Gpu, &celsius); }))
    reading.values[kTemperature] = celsius;
}

void GpuTelemetry::read_seldom(Seldom turn, GpuReading& reading) {
  switch (turn) {
    case kSmClockTurn:
      read_clock(kSmClock, nvml::Clock::Sm, reading);
      return read_reasons(reading);
    case kMemoryClockTurn:
      return read_clock(kMemoryClock, nvml::Clock::Memory, reading);
    case kUtilizationTurn:
      return read_utilization(reading);
    case kMemoryTurn:
      return read_memory(reading);
    case kTemperatureTurn:
      return read_temperature(reading);
    case kPcieTurn:
      return read_fields(pcie_, reading);
    case kNvlinkTurn:
      return read_fields(nvlink_, reading);
    case kTurns:
      return;
  }
}

std::vector<TimedReading> GpuTelemetry::read(int64_t monotonic_ns, int64_t budget_ns) {
  std::vector<TimedReading> readings;
  if (device_ == nullptr) return readings;
  GpuReading reading;
  int64_t before_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
  const auto spent_ns = [&] {
    const int64_t now_ns = system_ns(CLOCK_THREAD_CPUTIME_ID);
    return now_ns - std::exchange(before_ns, now_ns);
  };
  read_power(readings, reading, monotonic_ns);
  owed_ns_ += spent_ns();
  const int64_t paid_ns = std::min(owed_ns_ / kPaidIn, budget_ns - budget_ns / kLeastShare);
  owed_ns_ -= paid_ns;
  turns_.begin_sample(budget_ns - paid_ns);
  for (size_t turn = 0; turn < kTurns; ++turn) {
    if (!turns_.is_due(turn)) continue;
    read_seldom(static_cast<Seldom>(turn), reading);
    turns_.note(turn, spent_ns());
  }
  readings.push_back({monotonic_ns, reading});
  return readings;
}

std::vector<TimedReading> GpuTelemetry::take_kept(int64_t monotonic_ns) {
  std::vector<TimedReading> readings;
  if (keeps_power()) kept_power_->take(monotonic_ns, readings);
  return readings;
}

void GpuTelemetry::skip_kept(int64_t monotonic_ns) {
  if (keeps_power()) kept_power_->skip_until(monotonic_ns);
}

std::optional<uint64_t> GpuTelemetry::energy_mj() {
  if (device_ == nullptr || !has_energy_) return std::nullopt;
  uint64_t millijoules = 0;
  const nvml::Result result = library_.total_energy(device_, &millijoules);
  has_energy_ = result == nvml::Result::Success;
  if (has_energy_) return millijoules;
  refuse("energy_j", library_.failure(result));
  return std::nullopt;
}

void GpuTelemetry::describe(JsonObject& json) const {
  json.put("uuid", uuid_);
  if (!reason_.empty()) json.put("reason", reason_);
  if (device_ == nullptr) return;
  json.put("power_is", averages_power_ ? "average" : "instant");
  JsonObject missing;
  for (const auto& [name, why] : missing_) missing.put(name, why);
  if (!missing_.empty()) json.raw("missing", missing.text());
}

}  // namespace bragg
