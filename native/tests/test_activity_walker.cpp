// Buffers as an H200 delivered them (tests/gpu/record_buffers.py), and damaged ones.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/activity_walker.h"
#include "backends/cuda/buffer_dump.h"
#include "check.h"

namespace {

using bragg::DeviceEvent;
using bragg::DeviceEventKind;

bragg::DumpedBuffer recorded() { return bragg::read_dumped_buffer(BRAGG_GOLDEN_DIR "/buffers/h200-cupti-13.0.buffer"); }

std::vector<DeviceEvent> events_of(std::vector<uint8_t>& bytes, uint32_t version, bragg::WalkResult* result = nullptr,
                                   const bragg::NextRecord& next_record = {}) {
  std::vector<DeviceEvent> events;
  const bragg::WalkResult walked = bragg::walk_activity(bytes.data(), bytes.size(), version, next_record,
                                                        [&](const DeviceEvent& event) { events.push_back(event); });
  if (result != nullptr) *result = walked;
  return events;
}

TEST(recorded_buffers_of_a_gpu_are_read_to_the_end) {
  bragg::DumpedBuffer dumped = recorded();
  REQUIRE(dumped.cupti_version == 130001);
  bragg::WalkResult result;
  const std::vector<DeviceEvent> events = events_of(dumped.bytes, dumped.cupti_version, &result);
  CHECK_EQ(result.unread_bytes, 0);
  CHECK_EQ(result.records, events.size());
  std::map<std::string, int> kernels;
  std::map<int, int> kinds;
  for (const DeviceEvent& event : events) {
    ++kinds[static_cast<int>(event.kind)];
    if (event.kind == DeviceEventKind::Kernel) ++kernels[event.name];
    CHECK(event.correlation != bragg::CorrelationId::None && event.start_ns > 0 && event.end_ns > event.start_ns);
    CHECK_EQ(event.device, 0);
  }
  CHECK_EQ(std::count_if(kernels.begin(), kernels.end(),
                         [](const auto& kernel) {
                           return kernel.first.find("spin_kernel") != std::string::npos && kernel.second == 10;
                         }),
           1);
  CHECK_EQ(std::count_if(kernels.begin(), kernels.end(),
                         [](const auto& kernel) {
                           return kernel.first.find("CUDAFunctorOnSelf_add") != std::string::npos &&
                                  kernel.second == 40;
                         }),
           1);
  CHECK_EQ(kinds[static_cast<int>(DeviceEventKind::Copy)], 3);
  CHECK_EQ(kinds[static_cast<int>(DeviceEventKind::Set)], 0);
}

TEST(the_launch_configuration_of_a_recorded_kernel_is_read) {
  bragg::DumpedBuffer dumped = recorded();
  const std::vector<DeviceEvent> events = events_of(dumped.bytes, dumped.cupti_version);
  const auto spin = std::find_if(events.begin(), events.end(), [](const DeviceEvent& event) {
    return event.name != nullptr && std::string(event.name).find("spin_kernel") != std::string::npos;
  });
  REQUIRE(spin != events.end());
  for (int axis = 4; axis < 10; ++axis) CHECK_EQ(spin->launch_config[axis], 1);  // grid and block of one thread
  CHECK(spin->launch_config[0] >= 4 && spin->launch_config[0] <= 255);           // registers
}

TEST(a_buffer_that_is_cut_anywhere_is_read_up_to_there) {
  bragg::DumpedBuffer dumped = recorded();
  const size_t all = events_of(dumped.bytes, dumped.cupti_version).size();
  for (size_t size = 0; size < dumped.bytes.size(); size += 7) {
    std::vector<uint8_t> cut(dumped.bytes.begin(), dumped.bytes.begin() + static_cast<ptrdiff_t>(size));
    bragg::WalkResult result;
    const size_t read = events_of(cut, dumped.cupti_version, &result).size();
    if (read > all || result.unread_bytes >= 248) bragg::test::fail(__FILE__, __LINE__, std::to_string(size));
  }
}

// cuptiActivityGetNextRecord of a CUPTI that also has records of `kForeign`.
constexpr auto kForeign = static_cast<bragg::cupti::Kind>(60);
constexpr size_t kForeignBytes = 40;

bragg::cupti::Result next_with_foreign(uint8_t* buffer, size_t valid_bytes, void** record) {
  bragg::cupti::Kind kind;
  std::memcpy(&kind, *record, sizeof kind);
  const size_t size = kind == kForeign ? kForeignBytes : bragg::cupti::record_size(kind, 130001);
  if (size == 0) return bragg::cupti::Result::InvalidKind;
  uint8_t* next = static_cast<uint8_t*>(*record) + size;
  if (next + sizeof kind > buffer + valid_bytes) return bragg::cupti::Result::MaxLimitReached;
  *record = next;
  return bragg::cupti::Result::Success;
}

TEST(records_that_another_asked_for_are_walked_over_and_counted) {
  bragg::DumpedBuffer dumped = recorded();
  const size_t all = events_of(dumped.bytes, dumped.cupti_version).size();
  std::vector<uint8_t> mixed;
  for (size_t at = 0; at < dumped.bytes.size();) {
    std::vector<uint8_t> foreign(kForeignBytes, 0xAB);
    std::memcpy(foreign.data(), &kForeign, sizeof kForeign);
    mixed.insert(mixed.end(), foreign.begin(), foreign.end());
    bragg::cupti::Kind kind;
    std::memcpy(&kind, &dumped.bytes[at], sizeof kind);
    const auto from = dumped.bytes.begin() + static_cast<ptrdiff_t>(at);
    const size_t size = bragg::cupti::record_size(kind, dumped.cupti_version);
    mixed.insert(mixed.end(), from, from + static_cast<ptrdiff_t>(size));
    at += size;
  }
  bragg::WalkResult result;
  CHECK_EQ(events_of(mixed, dumped.cupti_version, &result, next_with_foreign).size(), all);
  CHECK_EQ(result.foreign_records, all);
  CHECK_EQ(result.unread_bytes, 0);
  mixed.resize(kForeignBytes);  // the last record of a buffer
  CHECK_EQ(events_of(mixed, dumped.cupti_version, &result, next_with_foreign).size(), 0);
  CHECK_EQ(result.foreign_records, 1);
  CHECK_EQ(result.unread_bytes, 0);
}

TEST(sizes_of_a_newer_version_come_from_cupti) {
  bragg::DumpedBuffer dumped = recorded();
  const size_t all = events_of(dumped.bytes, dumped.cupti_version).size();
  bragg::WalkResult result;
  CHECK_EQ(events_of(dumped.bytes, 140000, &result, next_with_foreign).size(), all);
  CHECK_EQ(result.foreign_records, 0);
  CHECK_EQ(events_of(dumped.bytes, 140000, &result).size(), 0);
  CHECK_EQ(result.unread_bytes, dumped.bytes.size());
  dumped.bytes.resize(100);  // less than a kernel's record
  CHECK_EQ(events_of(dumped.bytes, 140000, &result, next_with_foreign).size(), 0);
}

TEST(a_record_that_cupti_does_not_know_either_ends_the_walk_and_is_told) {
  bragg::DumpedBuffer dumped = recorded();
  dumped.bytes[0] = 0xEE;
  bragg::WalkResult result;
  CHECK_EQ(events_of(dumped.bytes, dumped.cupti_version, &result).size(), 0);
  CHECK_EQ(result.unread_bytes, dumped.bytes.size());
  CHECK_EQ(events_of(dumped.bytes, dumped.cupti_version, &result, next_with_foreign).size(), 0);
  CHECK_EQ(result.unread_bytes, dumped.bytes.size());
}

}  // namespace
