// What NCCL tells: sums of its operations, whose channels end late, out of order, or never.
#include <string>

#include "backends/nccl/nccl_calls.h"
#include "check.h"
#include "data/json.h"

namespace {

using bragg::NcclCalls;
using bragg::NcclCommunicator;
using bragg::NcclOperation;

constexpr bragg::SessionMask kFirstPhase = 1, kBothPhases = 3;

NcclOperation all_reduce(uint64_t count, int64_t sequence = 0, uint32_t channels = 2) {
  return {.function = "AllReduce",
          .dtype = "f32",
          .algorithm = "RING",
          .protocol = "LL",
          .count = count,
          .peer = 0,
          .channels = channels,
          .sequence = sequence};
}

NcclCommunicator of_two() { return {.id = 0xC0FFEE, .name = "", .rank = 1, .n_ranks = 2, .n_nodes = 1}; }

std::string told(const NcclCalls& calls, uint32_t phase) {
  bragg::JsonObject json;
  calls.describe(json, phase);
  return json.text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(time_of_a_collective_is_from_its_first_to_its_last_channel) {
  NcclCalls calls;
  const NcclCommunicator& communicator = *calls.add_communicator(of_two());
  calls.begin_phase(0);
  const uint64_t first = calls.begin(communicator, all_reduce(8, 5), kFirstPhase);
  const uint64_t second = calls.begin(communicator, all_reduce(8, 6), kFirstPhase);
  calls.begin_channel(second, 1000);
  calls.begin_channel(first, 110);
  calls.begin_channel(first, 100);
  calls.end_channel(first, 190);
  calls.end_channel(first, 150);
  calls.begin_channel(second, 1010);
  calls.end_channel(second, 1040);
  calls.end_channel(second, 1030);
  CHECK(has(told(calls, 0), R"("calls":2,"timed":2,"peer":0,"last_sequence":6,"gpu_ns":130,)"
                            R"("least_ns":40,"most_ns":90)"));
  CHECK(has(told(calls, 0), R"("group":"c0ffee","torch_group":"","rank":1,"n_ranks":2,"n_nodes":1)"));
}

TEST(a_phase_that_has_ended_gets_the_time_of_what_began_in_it) {
  NcclCalls calls;
  const NcclCommunicator& communicator = *calls.add_communicator(of_two());
  calls.begin_phase(0);
  calls.begin_phase(1);
  const uint64_t both = calls.begin(communicator, all_reduce(8, 0, 1), kBothPhases);
  calls.end_phase(0);
  CHECK(calls.is_wanted());
  const uint64_t later = calls.begin(communicator, all_reduce(8, 1, 1), kBothPhases);
  for (const uint64_t number : {both, later}) {
    calls.begin_channel(number, 100);
    calls.end_channel(number, 107);
  }
  CHECK(has(told(calls, 0), R"("calls":1,"timed":1)"));
  CHECK(has(told(calls, 1), R"("calls":2,"timed":2)"));
  calls.begin_phase(0);  // the slot of another one
  CHECK(has(told(calls, 0), R"("communicators":[])"));
}

TEST(a_channel_that_comes_too_late_is_not_another_collective) {
  NcclCalls calls;
  const NcclCommunicator& communicator = *calls.add_communicator(of_two());
  calls.begin_phase(0);
  const uint64_t lost = calls.begin(communicator, all_reduce(8, 0, 1), kFirstPhase);
  for (int i = 0; i < 5000; ++i) (void)calls.begin(communicator, all_reduce(8, i, 1), kFirstPhase);
  calls.begin_channel(lost, 100);
  calls.end_channel(lost, 200);
  calls.begin_channel(0, 100);
  calls.end_channel(0, 200);
  CHECK(has(told(calls, 0), R"("calls":5001,"timed":0)"));
}

TEST(kinds_of_calls_are_limited_and_the_others_counted) {
  NcclCalls calls;
  const NcclCommunicator& communicator = *calls.add_communicator(of_two());
  calls.begin_phase(0);
  for (uint64_t count = 0; count < 5000; ++count) (void)calls.begin(communicator, all_reduce(count), kFirstPhase);
  CHECK(calls.begin(communicator, all_reduce(9999), kFirstPhase) == 0);
  CHECK(calls.begin(communicator, all_reduce(7), kFirstPhase) != 0);
  CHECK(has(told(calls, 0), R"("lost_calls":905)"));
}

TEST(types_of_nccl_have_the_names_of_the_others) {
  CHECK(bragg::nccl_type_name("ncclBfloat16") == "bf16");
  CHECK(bragg::nccl_type_name("ncclFloat8e4m3") == "f8e4m3");
  CHECK(bragg::nccl_type_name("Unknown") == "elements");
}

}  // namespace
