// The correlation join, the metric table and the capture file.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "data/capture_file.h"
#include "data/capture_writer.h"
#include "data/correlation_map.h"
#include "data/json.h"
#include "data/metric_table.h"
#include "data/phase.h"
#include "data/recorder.h"
#include "scratch.h"

namespace {

using bragg::Chunk;
using bragg::ChunkType;
using bragg::CorrelationId;
using bragg::CorrelationMap;
using bragg::FrameId;
using bragg::Launch;
using bragg::MetricGroup;
using bragg::NodeId;

std::vector<uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint32_t u32_at(const std::vector<uint8_t>& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

// As the recorder does with each record; nullptr where it counts for no launch.
const Launch* take(CorrelationMap& map, uint32_t correlation) {
  Launch* launch = map.find(CorrelationId{correlation});
  if (launch == nullptr || launch->has_all()) return nullptr;
  launch->note_record();
  return launch;
}

TEST(a_launch_is_taken_once) {
  CorrelationMap map;
  map.insert(CorrelationId{7}, Launch{.shadow = NodeId{3}});
  const Launch* launch = take(map, 7);
  REQUIRE(launch != nullptr);
  CHECK_EQ(launch->shadow, NodeId{3});
  CHECK(take(map, 7) == nullptr);
  CHECK(take(map, 8) == nullptr);
}

TEST(a_launch_that_keeps_its_id_is_found_again) {
  CorrelationMap map;
  map.insert(CorrelationId{7}, Launch{.shadow = NodeId{3}, .keeps = true});
  for (int i = 0; i < 1000; ++i) CHECK(take(map, 7) != nullptr);
}

TEST(an_id_that_comes_round_again_is_the_new_launch) {
  CorrelationMap map;
  map.insert(CorrelationId{7}, Launch{.shadow = NodeId{3}});
  (void)take(map, 7);
  map.insert(CorrelationId{7}, Launch{.shadow = NodeId{4}});
  const Launch* launch = take(map, 7);
  REQUIRE(launch != nullptr);
  CHECK_EQ(launch->shadow, NodeId{4});
}

TEST(launches_without_records_age_out_and_recent_ones_stay) {
  CorrelationMap map;
  constexpr uint32_t kLaunches = 3'000'000;
  for (uint32_t id = 1; id <= kLaunches; ++id) map.insert(CorrelationId{id}, Launch{.shadow = NodeId{id}});
  CHECK(take(map, 1) == nullptr);
  for (uint32_t id = kLaunches - 200'000; id <= kLaunches; ++id) {
    const Launch* launch = take(map, id);
    if (launch == nullptr || launch->shadow != NodeId{id})
      bragg::test::fail(__FILE__, __LINE__, "a recent launch is lost");
  }
}

TEST(metrics_add_up_and_only_changes_are_taken) {
  bragg::MetricTable table;
  table.add(NodeId{5}, MetricGroup::Device, 100, 8);
  table.add(NodeId{5}, MetricGroup::Device, 50, 8);
  table.add(NodeId{5}, MetricGroup::Host, 1000);
  CHECK_EQ(table.take_changes().size(), 2);
  CHECK_EQ(table.take_changes().size(), 0);
  table.add(NodeId{5}, MetricGroup::Device, 300);
  const auto changes = table.take_changes();
  REQUIRE(changes.size() == 1);
  CHECK_EQ(changes[0].count, 3);
  CHECK_EQ(changes[0].total_ns, 450);
  CHECK_EQ(changes[0].min_ns, 50);
  CHECK_EQ(changes[0].max_ns, 300);
  CHECK_EQ(changes[0].bytes, 16);
}

TEST(values_add_up_by_the_law_of_their_metric) {
  auto& names = bragg::MetricNames::instance();
  const auto flops = names.intern("test flops", "", bragg::MetricKind::Inclusive, true);
  const auto bytes = names.intern("test bytes", "B", bragg::MetricKind::Exclusive, false);
  const auto tile = names.intern("test tile", "", bragg::MetricKind::Property, false);
  bragg::ValueTable table;
  for (const double value : {1.5, 2.25}) table.add({NodeId{7}, flops}, std::bit_cast<uint64_t>(value));
  for (const int64_t value : {5, -2}) table.add({NodeId{7}, bytes, 1, 2}, static_cast<uint64_t>(value));
  for (const uint64_t value : {64, 32}) table.add({NodeId{7}, tile}, value);
  const auto rows = table.take_changes();
  REQUIRE(rows.size() == 3);
  CHECK_EQ(std::bit_cast<double>(rows[0].bits), 3.75);
  CHECK_EQ(static_cast<int64_t>(rows[1].bits), 3);
  CHECK_EQ(rows[1].count, 2);
  CHECK_EQ(rows[2].bits, 32);
}

TEST(a_metric_keeps_its_first_type) {
  auto& names = bragg::MetricNames::instance();
  const auto id = names.intern("test once", "us", bragg::MetricKind::Inclusive, true);
  CHECK_EQ(names.intern("test once", "us", bragg::MetricKind::Inclusive, true), id);
  CHECK_EQ(names.intern("test once", "us", bragg::MetricKind::Inclusive, false), bragg::MetricId::None);
  CHECK_EQ(names.intern("test once", "us", bragg::MetricKind::Exclusive, true), bragg::MetricId::None);
  CHECK_EQ(names.intern("test once", "ms", bragg::MetricKind::Inclusive, true), bragg::MetricId::None);
}

TEST(durations_are_counted_in_buckets_of_a_sixteenth_octave) {
  bragg::Durations durations;
  for (const uint64_t duration_ns : {1000, 1023, 1024, 1087, 1088}) durations.add(FrameId{3}, duration_ns, 50);
  durations.add(FrameId{3}, 1000, 40);
  const auto rows = durations.take_changes();
  REQUIRE(rows.size() == 3);
  CHECK_EQ(rows[0].count, 3);  // 992 ... 1023
  CHECK_EQ(rows[0].first_ns, 40);
  CHECK_EQ(rows[1].count, 2);  // 1024 ... 1087
  CHECK_EQ(rows[2].bucket, rows[1].bucket + 1);
  CHECK_EQ(durations.take_changes().size(), 0);
}

TEST(the_checksum_is_zlibs) {
  const std::string text = "123456789";
  CHECK_EQ(bragg::crc32({reinterpret_cast<const uint8_t*>(text.data()), text.size()}), 0xCBF43926u);
  CHECK_EQ(bragg::crc32({}), 0);
}

TEST(chunks_are_laid_out_as_documented) {
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("layout.part");
  bragg::CaptureFile writer;
  REQUIRE(writer.open(path) == 0);
  Chunk chunk(ChunkType::Nodes, 3);
  chunk.number(9);
  const std::vector<uint32_t> parents{1, 2, 3};
  chunk.column(std::span<const uint32_t>(parents));
  writer.write(chunk);
  writer.close();
  const std::vector<uint8_t> bytes = bytes_of(path);
  REQUIRE(bytes.size() == 16 + 24 + 24);
  CHECK_EQ(std::string(bytes.begin(), bytes.begin() + 8), "BRAGGCAP");
  CHECK_EQ(std::string(bytes.begin() + 16, bytes.begin() + 20), "CHNK");
  CHECK_EQ(u32_at(bytes, 20), 4);   // type
  CHECK_EQ(u32_at(bytes, 24), 3);   // rows
  CHECK_EQ(u32_at(bytes, 28), 24);  // payload: number, three ids, padding
  CHECK_EQ(u32_at(bytes, 32), bragg::crc32({&bytes[40], 24}));
  CHECK_EQ(u32_at(bytes, 36), bragg::crc32({&bytes[16], 20}));
  CHECK_EQ(u32_at(bytes, 48), 1);
  CHECK_EQ(u32_at(bytes, 60), 0);
}

TEST(a_full_disk_leaves_whole_chunks_and_says_so) {
  bragg::CaptureFile writer;
  if (writer.open("/dev/full") == 0) writer.write(Chunk(ChunkType::End, 0));
  CHECK_EQ(writer.error(), ENOSPC);
}

TEST(a_write_that_fails_is_told_in_the_header) {
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("full.part");
  bragg::CaptureFile writer;
  REQUIRE(writer.open(path) == 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{30, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &full);
  writer.write(Chunk(ChunkType::End, 0));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  writer.close();
  const std::vector<uint8_t> bytes = bytes_of(path);
  CHECK_EQ(writer.error(), EFBIG);
  REQUIRE(bytes.size() == 16);
  CHECK_EQ(u32_at(bytes, 12), EFBIG);
}

#ifndef __SANITIZE_THREAD__  // which starts no threads in a forked child
TEST(a_process_that_is_told_to_end_while_its_capture_is_written_waits_for_it) {
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("ending.part");
  const pid_t child = fork();
  if (child == 0) {
    bragg::CaptureWriter writer;
    if (!bragg::Recorder::finish_on_signal(SIGTERM) || writer.open(path) != 0) _exit(1);
    writer.write(Chunk(ChunkType::End, 0));
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      bragg::Outboxes::instance().write_out();
    }).detach();
    raise(SIGTERM);
    _exit(2);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGTERM);
  CHECK_EQ(bytes_of(path).size(), 16 + 24);
}
#endif

namespace {

int descriptor_of(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the directory itself
    if (std::filesystem::read_symlink(entry.path(), gone) == path) return std::stoi(entry.path().filename());
  }
  return -1;
}

}  // namespace

TEST(captures_take_no_number_that_the_program_s_next_file_would_get_alone) {
  const bragg::test::ScratchDirectory directory;
  const int next = dup(STDOUT_FILENO);
  REQUIRE(next >= 0 && close(next) == 0);
  bragg::CaptureFile writer;
  REQUIRE(writer.open(directory.file("high.part")) == 0);
  CHECK_EQ(dup(STDOUT_FILENO), next);
  CHECK_EQ(close(next), 0);
  CHECK_EQ(fcntl(descriptor_of(directory.file("high.part")), F_GETFD), FD_CLOEXEC);
}

TEST(a_capture_is_no_standard_stream_where_descriptors_are_few) {
  const bragg::test::ScratchDirectory directory;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
  close(STDIN_FILENO);
  const rlimit few{.rlim_cur = 3, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  bragg::CaptureFile writer;
  const int error = writer.open(directory.file("few.part"));
  setrlimit(RLIMIT_NOFILE, &before);
  if (input >= 0) dup2(input, STDIN_FILENO);
  CHECK_EQ(error, EMFILE);
}

TEST(a_program_that_closes_all_descriptors_gets_nothing_into_its_own_files) {
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("closed.part");
  bragg::CaptureFile writer;
  REQUIRE(writer.open(path) == 0);
  const int ours = descriptor_of(path);
  const int theirs = open(directory.file("theirs").c_str(), O_RDWR | O_CREAT, 0644);
  REQUIRE(dup2(theirs, ours) == ours);  // closes the capture
  writer.write(Chunk(ChunkType::End, 0));
  writer.close();
  CHECK_EQ(lseek(theirs, 0, SEEK_END), 0);
  CHECK_EQ(close(ours), 0);
  close(theirs);
  CHECK_EQ(writer.error(), 0);
  CHECK_EQ(bytes_of(path).size(), 16 + 24);
}

TEST(a_tree_capture_is_rewritten_when_snapshots_pile_up) {
  const bragg::test::ScratchDirectory directory;
  const std::string path = directory.file("compact.part");
  bragg::SessionOptions options;
  options.part_path = path;
  bragg::Phase session(options, 0);
  REQUIRE(session.open() == 0);
  const std::vector<bragg::Track> no_tracks;
  std::vector<bragg::NodeId> nodes;
  for (int i = 0; i < 2000; ++i)
    nodes.push_back(bragg::CallingContextTree::instance().child(
        bragg::kRootNode, bragg::intern_frame(bragg::FrameKind::Scope, std::to_string(i))));
  for (int round = 0; round < 400; ++round) {
    for (const bragg::NodeId node : nodes) session.count(node, MetricGroup::Host, 10);
    session.flush(no_tracks, {});
  }
  CHECK(session.writer().size_bytes() < (9u << 20));  // 400 x 96 KB were written
  session.finish(no_tracks, {}, "{}");
  CHECK_EQ(session.writer().write_out(), 0);
  CHECK(std::filesystem::file_size(path) < (9u << 20));
}

TEST(busy_time_is_the_union_of_intervals_in_whatever_order_they_come) {
  bragg::DeviceActivity activity;
  const auto add = [&](int64_t start_ns, int64_t end_ns) {
    bragg::DeviceEvent event;
    event.start_ns = start_ns;
    event.end_ns = end_ns;
    activity.add(event);
  };
  constexpr int64_t kKernels = 200'000;  // of 600 ns every 1000 ns: those of one thread after those of the other
  for (int64_t i = 0; i < kKernels; i += 2) add(1000 * i + 1, 1000 * i + 601);
  for (int64_t i = 1; i < kKernels; i += 2) add(1000 * i + 1, 1000 * i + 601);
  CHECK_EQ(activity.totals().busy_json, "{\"0\":" + std::to_string(600 * kKernels) + "}");
  add(1, 1000 * kKernels);  // another stream was busy all the time
  CHECK_EQ(activity.totals().busy_json, "{\"0\":" + std::to_string(1000 * kKernels - 1) + "}");
  CHECK_EQ(activity.first_ns(), 1);
  CHECK_EQ(activity.last_ns(), 1000 * kKernels);
}

TEST(the_curve_of_a_device_has_its_busy_time_and_its_launches_however_long_it_runs) {
  bragg::ActivityCurve curve;
  constexpr int64_t kStart = 1'795'404'889'000'000'000;
  curve.began(kStart);
  curve.worked(kStart, kStart + 300'000);  // bins of 131072 ns: two full ones and 37856 ns
  CHECK_EQ(curve.json(),
           "{\"start_ns\":1795404889000000000,\"bin_ns\":131072,\"busy_ns\":[131072,131072,37856],"
           "\"launches\":[1,0,0],\"late_ns\":[0,0,0],\"queued_ns\":[0,0,0],"
           "\"full_queue_ns\":[0,0,0],\"waited_ns\":[0,0,0]}");
  curve.began(kStart + 4096 * 131'072);  // the first time that does not fit
  CHECK(curve.json().starts_with("{\"start_ns\":1795404889000000000,\"bin_ns\":262144,\"busy_ns\":[262144,37856,0,"));
  CHECK(curve.json().find(",0,1],\"late_ns\":[") != std::string::npos);
  curve.began(kStart - 5);
  CHECK(curve.json().find("\"launches\":[2,0,") != std::string::npos);
}

TEST(an_hour_of_a_device_is_a_curve_of_some_kilobytes) {
  bragg::ActivityCurve curve;
  for (int64_t second = 1; second <= 3600; ++second) {
    curve.began(1'000'000'000 * second);
    curve.worked(1'000'000'000 * second, 1'000'000'000 * second + 500'000'000);
  }
  CHECK(curve.json().size() < 72u << 10);
}

TEST(json_text_is_escaped) {
  CHECK_EQ(bragg::JsonObject().put("a\"b", "line\nend").put("n", 3).text(), "{\"a\\\"b\":\"line\\u000aend\",\"n\":3}");
  CHECK_EQ(bragg::json_string("gr\xC3\xBC\xC3\x9F\xF0\x9F\x94\x8D\t"), "\"grüß🔍\\u0009\"");
  // Latin 1, a character that is cut, an overlong one, a surrogate, one beyond the last
  CHECK_EQ(bragg::json_string("\xE9|\xE4\xB8"), "\"\uFFFD|\uFFFD\uFFFD\"");
  CHECK_EQ(bragg::json_string("\xC0\x80"), "\"\uFFFD\uFFFD\"");
  CHECK_EQ(bragg::json_string("\xED\xA0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");
  CHECK_EQ(bragg::json_string("\xF4\x90\x80\x80"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\"");
}

}  // namespace
