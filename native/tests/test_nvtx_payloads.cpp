// Numbers that programs give to NVTX ranges and marks.
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "context/metric_names.h"
#include "nvtx_copy.h"

namespace {

using bragg::Event;
using bragg::EventKind;
using bragg::nvtx::EventAttributes;
using bragg::nvtx::PayloadType;
using bragg::test::ActiveSession;
using bragg::test::context;
using bragg::test::Copy;
using bragg::test::path_of;
using bragg::test::text;

// The number of each value that this thread has recorded, by its metric and the name of its node.
std::multimap<std::string, double> values_of(const std::vector<Event>& events) {
  std::multimap<std::string, double> found;
  for (const Event& event : events) {
    if (event.kind != EventKind::Value) continue;
    const auto name = bragg::MetricNames::instance().at(event.metric).name;
    found.emplace(std::string(bragg::FrameTable::instance().string(name)) + " of " + path_of(event.shadow).back().name,
                  std::bit_cast<double>(event.value.bits));
  }
  return found;
}

TEST(payloads_that_are_numbers_are_values_of_their_range) {
  const ActiveSession session;
  const Copy copy;
  struct {
    PayloadType type;
    uint64_t bits;
    double expected;
  } const rows[] = {
      {PayloadType::UnsignedInt64, uint64_t{1} << 63, 0x1p63},
      {PayloadType::Int64, static_cast<uint64_t>(int64_t{-3}), -3},
      {PayloadType::Double, std::bit_cast<uint64_t>(2.5), 2.5},
      {PayloadType::UnsignedInt32, 0xDEADBEEF'FFFFFFFF, 4294967295.0},  // only the lower half was written
      {PayloadType::Int32, 0xDEADBEEF'FFFFFFFE, -2},
      {PayloadType::Float, 0xDEADBEEF'3F000000, 0.5},
  };
  for (const auto& [type, bits, expected] : rows) {
    EventAttributes what = text("range");
    what.payload_type = type;
    what.payload = bits;
    copy.push(nullptr, what);
    copy.pop();
    what.message = "mark";
    copy.mark(nullptr, what);
    what.message = "started";
    copy.end(copy.start(nullptr, what));
    const std::multimap<std::string, double> wanted{
        {"nvtx_payload of range", expected},   {"nvtx_payload_sum of range", expected},
        {"nvtx_payload of mark", expected},    {"nvtx_payload_sum of mark", expected},
        {"nvtx_payload of started", expected}, {"nvtx_payload_sum of started", expected},
    };
    CHECK(values_of(ActiveSession::events()) == wanted);
  }
}

TEST(payloads_that_are_no_numbers_are_none) {
  const ActiveSession session;
  const Copy copy;
  EventAttributes what = text("range");
  what.payload = 7;
  for (const int32_t type : {0, 7, -1, static_cast<int32_t>(0xDFBD0009)}) {
    what.payload_type = static_cast<PayloadType>(type);
    copy.push(nullptr, what);
    copy.pop();
    CHECK(values_of(ActiveSession::events()).empty());
  }
  what.payload_type = PayloadType::Int64;
  what.size_bytes = 8;  // too small to have one
  copy.push(nullptr, what);
  copy.pop();
  CHECK(values_of(ActiveSession::events()).empty());
}

// NCCL pushes `ncclCommInitRankConfig` without a payload and pops it with one.
TEST(a_range_that_ends_with_a_payload_is_no_part_of_what_follows) {
  const ActiveSession session;
  Copy copy;
  const EventAttributes what = text("init");
  CHECK(copy.push(nullptr, what) == 0);
  CHECK(context().back().name == "init");
  CHECK(copy.pop_with_payload(nullptr) == 0);
  CHECK(context().empty());
  CHECK(copy.push_with_payload(nullptr) == 0);
  CHECK(context().size() == 1);
  CHECK(copy.pop(nullptr) == 0);
  CHECK(context().empty());
  copy.end_with_payload(nullptr, copy.start(nullptr, what));
  CHECK(ActiveSession::events().back().kind == EventKind::Range);
}

TEST(schemas_of_payloads_have_numbers_of_their_own) {
  Copy copy;
  const uint64_t first = copy.register_schema(nullptr);
  CHECK(first >= uint64_t{1} << 32);
  CHECK(copy.register_schema(nullptr) != first);
}

TEST(other_extensions_and_small_ones_are_left_alone) {
  intptr_t places[8] = {};
  CHECK(Copy::is_served(static_cast<bragg::nvtx::ExtensionModule>(3), {0, 8, places}));
  for (const intptr_t place : places) CHECK(place == 0);
  CHECK(Copy::is_served(bragg::nvtx::ExtensionModule::Payload, {0, 5, places}));
  CHECK(places[4] != 0);
  CHECK(places[5] == 0);
}

}  // namespace
