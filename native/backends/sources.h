// The sources of events of the process: a row of the table in sources.cpp each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/event_source.h"

namespace bragg {

struct SourceRow {
  std::string_view name;
  EventSource& (*source)();  // made at its first use, never destroyed
};

// Threads: any, once the last row was added.
class EventSources {
 public:
  static EventSources& instance();

  [[nodiscard]] std::span<const SourceRow> rows() const { return rows_; }
  [[nodiscard]] EventSource* find(std::string_view name) const;  // nullptr: there is none
  // Before anything is recorded.
  void add(const SourceRow& row) { rows_.push_back(row); }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const SourceRow& row : rows_) visit(row.source());
  }
  // Those that a session records: only the host, or all.
  template <class Visit>
  void for_each(bool with_devices, Visit&& visit) const {
    for_each([&](EventSource& source) {
      if (with_devices || source.is_of_host()) visit(source);
    });
  }

  [[nodiscard]] bool tells_records() const;  // any of them
  [[nodiscard]] uint64_t dropped_records() const;
  [[nodiscard]] uint64_t pending() const;
  [[nodiscard]] uint32_t current_device() const;  // kNone: no source knows
  // "": one has done it, or nothing records.
  [[nodiscard]] std::string add_value(MetricId metric, const DeviceArray& array, void* stream) const noexcept;

 private:
  EventSources();
  std::vector<SourceRow> rows_;
};

}  // namespace bragg
