// What NVML says of one GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/telemetry/gpu_reading.h"
#include "backends/telemetry/kept_power.h"
#include "backends/telemetry/nvml_library.h"
#include "backends/telemetry/quantities.h"
#include "backends/telemetry/rate.h"
#include "backends/telemetry/reading_turns.h"
#include "data/json.h"

namespace bragg {

// Threads: that of telemetry. What the GPU refuses once is not asked again.
class GpuTelemetry {
 public:
  GpuTelemetry(const NvmlLibrary& library, uint32_t ordinal, std::string uuid);

  [[nodiscard]] uint32_t ordinal() const { return ordinal_; }
  [[nodiscard]] bool has_device() const { return device_ != nullptr; }
  [[nodiscard]] const std::string& uuid() const { return uuid_; }
  // Power since the last time, and the rest as often as `budget_ns` of CPU time affords; the latest is the last.
  [[nodiscard]] std::vector<TimedReading> read(int64_t monotonic_ns, int64_t budget_ns);
  // Power that the driver has kept since the last time.
  [[nodiscard]] std::vector<TimedReading> take_kept(int64_t monotonic_ns);
  // Until then it is known, or not wanted.
  void skip_kept(int64_t monotonic_ns);
  // Since the driver was loaded, mJ. Takes 3 ms on some boards.
  [[nodiscard]] std::optional<uint64_t> energy_mj();

  // JSON members: UUID, what power means, what is missing and why.
  void describe(JsonObject& json) const;

 private:
  // What is not in each reading.
  enum Seldom : size_t {
    kSmClockTurn,  // and what holds it
    kMemoryClockTurn,
    kUtilizationTurn,
    kMemoryTurn,
    kTemperatureTurn,
    kPcieTurn,
    kNvlinkTurn,
    kTurns
  };
  struct WantedField {
    nvml::Field field;
    uint32_t scope;
    size_t quantity;
    bool is_missing = false;
    Rate rate;
  };

  void read_fields(std::vector<WantedField>& fields, GpuReading& reading);
  void take_field(WantedField& wanted, const nvml::FieldValue& told, GpuReading& reading, int64_t read_ns);
  [[nodiscard]] bool keeps_power() const { return kept_power_ && kept_power_->reason().empty(); }
  void read_power(std::vector<TimedReading>& readings, GpuReading& reading, int64_t time_ns);
  void read_clock(size_t quantity, nvml::Clock clock, GpuReading& reading);
  void read_reasons(GpuReading& reading);
  void read_seldom(Seldom turn, GpuReading& reading);
  void read_utilization(GpuReading& reading);
  void read_memory(GpuReading& reading);
  void read_temperature(GpuReading& reading);
  // Whether a call of the quantity worked; else it is missing from now on.
  template <class Call>
  [[nodiscard]] bool works(size_t quantity, Call&& call);
  void refuse(std::string_view name, const std::string& why);

  const NvmlLibrary& library_;
  uint32_t ordinal_;
  std::string uuid_;
  nvml::Device device_ = nullptr;
  std::optional<KeptPower> kept_power_;  // none: the driver keeps none
  std::string reason_;
  std::vector<WantedField> power_, pcie_, nvlink_;  // without those that are missing
  ReadingTurns<kTurns> turns_;
  int64_t owed_ns_ = 0;  // CPU time that power took, not yet taken from the budget of the others
  std::array<bool, gpu_quantity::kCount> is_missing_{};
  bool has_energy_ = false, has_reasons_ = false, averages_power_ = false;
  std::vector<std::pair<std::string, std::string>> missing_;
};

}  // namespace bragg
