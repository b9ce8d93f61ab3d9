#include "backends/telemetry/telemetry_sums.h"

#include <charconv>

namespace bragg {
namespace {

std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 7);
  return error == std::errc{} ? std::string(text, end) : "null";
}

}  // namespace

void EnergySum::border(const std::optional<Reading>& now, bool goes_on) {
  if (now && begin_ && now->millijoules >= begin_->millijoules) {
    millijoules_ += now->millijoules - begin_->millijoules;
    span_ns_ += now->time_ns - begin_->time_ns;
  }
  begin_ = goes_on ? now : std::nullopt;
}

void GpuSums::add(const GpuReading& reading) {
  for (size_t i = 0; i < values.size(); ++i) values[i].add(reading.values[i]);
  if (!reading.clock_reasons) return;
  ++reason_samples;
  for (size_t i = 0; i < kClockReasons.size(); ++i) held[i] += (*reading.clock_reasons & kClockReasons[i].bit) != 0;
}

void describe_values(JsonObject& json, std::span<const Quantity> quantities, std::span<const ValueSum> values) {
  for (size_t i = 0; i < quantities.size(); ++i) {
    const ValueSum& sum = values[i];
    if (sum.samples == 0) continue;
    json.raw(quantities[i].name, JsonObject()
                                     .put("samples", sum.samples)
                                     .raw("mean", number_text(sum.sum / static_cast<double>(sum.samples)))
                                     .raw("least", number_text(sum.least))
                                     .raw("most", number_text(sum.most))
                                     .text());
  }
}

void GpuSums::describe(JsonObject& json) const {
  describe_values(json, kGpuQuantities, values);
  if (energy.span_ns() > 0)
    json.raw("energy_j", number_text(static_cast<double>(energy.millijoules()) / 1e3))
        .put("energy_ns", energy.span_ns());
  if (reason_samples == 0) return;
  JsonObject reasons;
  reasons.put("samples", reason_samples);
  for (size_t i = 0; i < kClockReasons.size(); ++i)
    if (held[i] != 0) reasons.put(kClockReasons[i].name, held[i]);
  json.raw("clock_reasons", reasons.text());
}

}  // namespace bragg
