// Whose launch a value belongs to that a graph read on the GPU.
#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "check.h"
#include "context/recording_state.h"
#include "data/graph_readings.h"

namespace {

using bragg::ArrivedValue;
using bragg::GraphReadings;
using bragg::Launch;
using bragg::NodeId;
using bragg::ValueTarget;

constexpr bragg::ReadingId kReading{7};

Launch launch_from(uint32_t place, uint32_t graph = 1) {
  return {.shadow = NodeId{place}, .python = NodeId{place}, .mask = 1, .graph = bragg::GraphVersionId{graph}};
}

ArrivedValue integer(int64_t value, uint64_t count = 1, uint32_t index = 0, uint32_t length = 0) {
  return {ValueTarget{.length = length, .is_float = false, .reading = kReading}, index, count,
          static_cast<uint64_t>(value), count > 1};
}

// Sum by place of launch.
using Given = std::map<uint32_t, int64_t>;
Given take(GraphReadings& readings, const std::vector<ArrivedValue>& values) {
  Given given;
  for (const ArrivedValue& value : values)
    readings.take(value, [&](const Launch& launch, uint64_t bits, uint64_t) {
      if (launch.mask != 0) given[number_of(launch.shadow)] += static_cast<int64_t>(bits);
    });
  return given;
}

TEST(a_launch_that_failed_reads_nothing) {
  GraphReadings readings;
  for (const uint32_t place : {1, 2, 1}) readings.note_launch(kReading, launch_from(place));
  readings.take_back(kReading, launch_from(2));
  CHECK(take(readings, {integer(10), integer(20)}) == (Given{{1, 30}}));
}

TEST(each_value_is_the_launchs_that_read_it) {
  GraphReadings readings;
  for (const uint32_t place : {1, 1, 2, 1, 2}) readings.note_launch(kReading, launch_from(place));
  CHECK((take(readings, {integer(1), integer(10), integer(100)}) == Given{{1, 11}, {2, 100}}));
  readings.note_launch(kReading, launch_from(3));
  CHECK((take(readings, {integer(1000), integer(10000), integer(5)}) == Given{{1, 1000}, {2, 10000}, {3, 5}}));
}

TEST(elements_of_a_vector_come_each_in_their_own_order) {
  GraphReadings readings;
  for (const uint32_t place : {1, 2}) readings.note_launch(kReading, launch_from(place));
  const auto element = [](int64_t value, uint32_t index) { return integer(value, 1, index, 2); };
  CHECK((take(readings, {element(1, 0), element(10, 0), element(100, 1), element(1000, 1)}) ==
         Given{{1, 101}, {2, 1010}}));
}

TEST(a_sum_is_shared_out_by_launches_and_stays_exact) {
  GraphReadings readings;
  for (const uint32_t place : {1, 1, 1, 2, 2}) readings.note_launch(kReading, launch_from(place));
  CHECK((take(readings, {integer(7), integer(403, 4)}) == Given{{1, 207}, {2, 203}}));
  readings.note_launch(kReading, launch_from(3));
  CHECK((take(readings, {integer(5)}) == Given{{3, 5}}));
}

TEST(floating_point_sums_are_shared_out_too) {
  GraphReadings readings;
  for (const uint32_t place : {1, 2, 2}) readings.note_launch(kReading, launch_from(place));
  const ArrivedValue value{ValueTarget{.reading = kReading}, 0, 3, std::bit_cast<uint64_t>(4.5), true};
  std::vector<double> given;
  readings.take(value, [&](const Launch&, uint64_t bits, uint64_t) { given.push_back(std::bit_cast<double>(bits)); });
  CHECK(given == std::vector<double>({1.5, 3.0}));
}

TEST(values_beyond_the_launches_are_the_last_ones_while_its_sessions_record) {
  GraphReadings readings;
  readings.note_launch(kReading, launch_from(1));
  bragg::recording_state.active.store(1);
  CHECK((take(readings, {integer(1), integer(2), integer(3)}) == Given{{1, 6}}));
  bragg::recording_state.active.store(0);
  CHECK(take(readings, {integer(4)}).empty());
  readings.note_launch(kReading, launch_from(2));
  CHECK((take(readings, {integer(5)}) == Given{{2, 5}}));
}

TEST(values_of_graphs_that_nobody_saw_launched_are_nobodys) {
  GraphReadings readings;
  CHECK(take(readings, {integer(1)}).empty());
}

TEST(a_forgotten_graph_takes_its_readings_with_it) {
  GraphReadings readings;
  readings.note_launch(kReading, launch_from(1, 4));
  readings.forget([](bragg::GraphVersionId graph) { return graph == bragg::GraphVersionId{4}; });
  CHECK(take(readings, {integer(1)}).empty());
}

}  // namespace
