// A source of events is a folder and a row: nothing of the recorder knows this one.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "api/bragg_core.h"
#include "backends/sources.h"
#include "check.h"
#include "data/chunk_layouts.h"
#include "scratch.h"
#include "toy/toy_source.h"

namespace {

using bragg::ChunkType;
using bragg::ColumnType;
using bragg::test::comes_true;
using bragg::test::ScratchDirectory;
using bragg::test::ToySource;

constexpr int64_t kNowNs = 1'700'000'000'000'000'000;

ToySource& toy() {
  static const bool is_added = [] {
    bragg::EventSources::instance().add({ToySource::kName, ToySource::row});
    return true;
  }();
  (void)is_added;
  return ToySource::instance();
}

class Trace {
 public:
  explicit Trace(int backend = BRAGG_AUTO) : path_(directory_.file("run.part")) {
    (void)toy();
    bragg_session_options options{};
    options.part_path = path_.c_str();
    options.meta_json = "{}";
    options.cupti_candidates = "";
    options.backend = backend;
    options.trace = 1;
    options.flush_interval_ms = 20;
    int os_error = 0;
    char reason[256] = "";
    session_ = bragg_session_start(&options, &os_error, reason, sizeof reason);
    if (session_ < 0) bragg::test::fail(__FILE__, __LINE__, reason);
  }
  ~Trace() { stop(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  [[nodiscard]] int session() const { return session_; }
  void stop() {
    if (session_ >= 0) bragg_session_stop(session_, "{}");
    session_ = -1;
  }

  // A column of all chunks of a type, as the table of layouts has it, 8 bytes a value.
  [[nodiscard]] std::vector<int64_t> column(ChunkType type, size_t index) const {
    const std::string bytes = content();
    const bragg::ColumnTypes columns = bragg::columns_of(type);
    std::vector<int64_t> values;
    uint32_t payload_bytes = 0;
    for (size_t chunk = 16; chunk + 24 <= bytes.size(); chunk += 24 + (payload_bytes + 7) / 8 * 8) {
      uint16_t its_type = 0;
      uint32_t rows = 0;
      std::memcpy(&its_type, &bytes[chunk + 4], 2);
      std::memcpy(&rows, &bytes[chunk + 8], 4);
      std::memcpy(&payload_bytes, &bytes[chunk + 12], 4);
      if (its_type != static_cast<uint16_t>(type)) continue;
      size_t at = chunk + 24 + 8;
      for (size_t before = 0; before < index; ++before) at += (rows * size_of(columns.types[before]) + 7) / 8 * 8;
      const size_t size = size_of(columns.types[index]);
      for (uint32_t row = 0; row < rows; ++row) {
        int64_t value = 0;
        std::memcpy(&value, &bytes[at + row * size], size);
        values.push_back(value);
      }
    }
    return values;
  }
  [[nodiscard]] bool says(const std::string& text) const { return content().find(text) != std::string::npos; }

 private:
  static size_t size_of(ColumnType type) { return type == ColumnType::U32 ? 4 : 8; }
  [[nodiscard]] std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  ScratchDirectory directory_;
  std::string path_;
  int session_ = -1;
};

TEST(a_toy_source_has_slices_counters_and_units_with_a_clock_of_their_own) {
  Trace trace;
  toy().submit("toy work", kNowNs, 500);
  toy().work();
  toy().set_power(kNowNs + 100, 12.5);
  trace.stop();
  const int64_t ticks = (kNowNs - ToySource::kEpochNs) * ToySource::kTicksPerNs;
  CHECK(trace.column(ChunkType::Slices, 0) == (std::vector<int64_t>{kNowNs, ticks}));
  CHECK(trace.column(ChunkType::Slices, 1) == (std::vector<int64_t>{500, 1000}));
  const auto kinds = trace.column(ChunkType::Tracks, 0);  // in the order in which they were met
  CHECK_EQ(kinds.size(), 3);
  CHECK_EQ(std::ranges::count(kinds, 3), 1);
  std::vector<int64_t> kinds_of_slices;
  for (const int64_t track : trace.column(ChunkType::Slices, 3)) kinds_of_slices.push_back(kinds.at(track));
  CHECK(kinds_of_slices == (std::vector<int64_t>{4, 5}));
  CHECK(trace.column(ChunkType::Clocks, 0) == (std::vector<int64_t>{7, 7}));
  CHECK(trace.column(ChunkType::Clocks, 1) == (std::vector<int64_t>{ticks, ticks + 1000}));
  CHECK(trace.column(ChunkType::Clocks, 2) == (std::vector<int64_t>{kNowNs, kNowNs + 500}));
  CHECK(trace.column(ChunkType::Counters, 0) == (std::vector<int64_t>{kNowNs + 100}));
  const auto watts = trace.column(ChunkType::Counters, 1);
  REQUIRE(watts.size() == 1);
  CHECK_EQ(std::bit_cast<double>(watts[0]), 12.5);
  CHECK(trace.says("toy work") && trace.says("toy power") && trace.says("\"toy\":{\"polls\":"));
}

TEST(a_toy_source_is_awaited_while_it_works) {
  Trace trace;
  toy().submit("late work", kNowNs, 500);
  std::thread device([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    toy().work();
  });
  trace.stop();
  device.join();
  CHECK_EQ(trace.column(ChunkType::Slices, 0).size(), 2);
}

TEST(a_toy_source_that_is_slow_is_stopped_all_the_same) {
  Trace trace;
  toy().set_poll_ms(1500);
  CHECK(comes_true([] { return toy().is_polled(); }));
  const uint64_t before = toy().stops();
  trace.stop();
  toy().set_poll_ms(0);
  CHECK_EQ(toy().stops(), before + 1);
}

#ifndef __SANITIZE_THREAD__  // which starts no threads in a forked child
// In a process of its own, which was told to leave: then nothing waits longer than 0.3 s for a device.
bool leaves_a_device_that_hangs() {
  bragg_hurry();
  Trace trace;
  toy().submit("work that does not end", kNowNs, 500);
  const uint64_t before = toy().drains();
  trace.stop();
  return toy().drains() - before < 200 &&  // 40 in 0.3 s, 600 in 5 s
         trace.column(ChunkType::Slices, 0).empty() && toy().pending() == 0;
}

TEST(a_toy_source_that_hangs_is_awaited_no_longer_than_the_deadline) {
  (void)toy();
  const pid_t child = fork();
  if (child == 0) _exit(leaves_a_device_that_hangs() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(a_toy_source_collects_while_something_records) {
  const Trace trace;
  CHECK(toy().is_collecting());
  bragg_session_deactivate(trace.session(), 0);
  CHECK(!toy().is_collecting());
  bragg_session_activate(trace.session());
  CHECK(toy().is_collecting());
}

TEST(a_recording_of_the_host_does_not_start_a_toy_device) {
  const Trace trace(BRAGG_CPU);
  CHECK(!toy().is_collecting());
}

#ifndef __SANITIZE_THREAD__
TEST(a_toy_source_survives_a_fork) {
  Trace trace;
  toy().submit("of the parent", kNowNs, 500);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_empty = toy().pending() == 0 && !toy().is_collecting();
    Trace own;
    toy().submit("of the child", kNowNs + 1, 500);
    toy().work();
    own.stop();
    _exit(is_empty && own.column(ChunkType::Slices, 0).size() == 2 && !own.says("of the parent") ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  toy().work();
  trace.stop();
  CHECK_EQ(trace.column(ChunkType::Slices, 0).size(), 2);
  CHECK(!trace.says("of the child"));
}
#endif

}  // namespace
