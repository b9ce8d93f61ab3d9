// Idle time of devices, folded as records come.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check.h"
#include "data/device_activity.h"

namespace {

using bragg::DeviceActivity;
using bragg::IdleKind;
using bragg::LaunchMoment;
using bragg::NodeId;

constexpr int64_t kStart = 1'795'404'889'000'000'000;
constexpr int64_t kUs = 1'000;

NodeId scope(const char* name, NodeId parent = bragg::kRootNode) {
  return bragg::CallingContextTree::instance().child(parent, bragg::intern_frame(bragg::FrameKind::Scope, name));
}

// Times in microseconds after kStart.
struct Program {
  DeviceActivity activity;

  void host(int64_t start_us, int64_t end_us, NodeId node, uint32_t thread = 0) {
    activity.note_host(thread, kStart + start_us * kUs, kStart + end_us * kUs, node);
  }
  void launch(int64_t start_us, int64_t end_us, NodeId caller) {
    activity.note_host(0, kStart + start_us * kUs, kStart + end_us * kUs, caller, true);
  }
  void work(int64_t start_us, int64_t end_us, NodeId node, int64_t launched_us, uint32_t device = 0,
            uint32_t thread = 0, uint32_t stream = 7, bool is_copy = false) {
    bragg::DeviceEvent event;
    event.kind = is_copy ? bragg::DeviceEventKind::Copy : bragg::DeviceEventKind::Kernel;
    event.device = device;
    event.stream = stream;
    event.start_ns = kStart + start_us * kUs;
    event.end_ns = kStart + end_us * kUs;
    const int64_t ended_ns = launched_us < 0 ? 0 : kStart + launched_us * kUs;
    activity.add(event, {node, thread, ended_ns});
  }
  // Microseconds, by device, kind and node.
  std::map<std::tuple<uint32_t, IdleKind, NodeId>, uint64_t> idle() {
    activity.settle_all();
    std::map<std::tuple<uint32_t, IdleKind, NodeId>, uint64_t> found;
    for (const bragg::IdleRow& row : activity.idle().rows())
      found[{row.key.device, row.key.kind, row.key.node}] += row.idle_ns;
    for (auto& [key, lasts] : found) lasts /= kUs;
    return found;
  }
};

using Times = std::map<std::tuple<uint32_t, IdleKind, NodeId>, uint64_t>;

TEST(a_pause_belongs_to_what_the_launching_thread_was_in_until_the_launch) {
  Program program;
  const NodeId step = scope("idle step"), data = scope("idle data", step), mm = scope("idle mm", step);
  program.host(0, 5, mm);
  program.host(12, 40, data);
  program.host(45, 60, mm);
  program.host(0, 70, step);
  program.work(1, 10, mm, 1);
  program.work(80, 90, mm, 55);  // launched at 55, and waited for something else until 80
  const Times expected{{{0, IdleKind::Late, step}, 2 + 5},
                       {{0, IdleKind::Late, data}, 28},
                       {{0, IdleKind::Late, mm}, 10},
                       {{0, IdleKind::Queued, mm}, 10},
                       {{0, IdleKind::Waited, mm}, 15}};
  CHECK(program.idle() == expected);
}

TEST(a_program_without_scopes_launches_below_the_root) {
  Program program;
  for (int64_t at_us : {0, 20, 40, 60}) {
    program.host(at_us, at_us + 5, bragg::kRootNode);  // the call that launches
    program.work(at_us + 6, at_us + 10, bragg::kRootNode, at_us + 5);
  }
  const Times expected{{{0, IdleKind::Late, bragg::kRootNode}, 3 * 15}, {{0, IdleKind::Queued, bragg::kRootNode}, 3}};
  CHECK(program.idle() == expected);
}

TEST(what_is_still_open_has_the_time_between_its_parts) {
  Program program;
  const NodeId loop = scope("idle loop"), mm = scope("idle mm", loop);
  program.host(50, 60, mm);
  program.work(1, 10, mm, 1);
  program.work(61, 90, mm, 58);
  const Times expected{{{0, IdleKind::Late, loop}, 40}, {{0, IdleKind::Late, mm}, 8}, {{0, IdleKind::Queued, mm}, 3}};
  CHECK(program.idle() == expected);
}

TEST(a_scope_that_is_still_open_has_the_time_before_its_launch) {
  Program program;
  const NodeId loop = scope("idle loop"), mm = scope("idle mm", loop);
  program.launch(50, 55, mm);
  program.work(1, 10, mm, 1);
  program.work(60, 90, mm, 55);
  const Times expected{{{0, IdleKind::Late, mm}, 45}, {{0, IdleKind::Queued, mm}, 5}};
  CHECK(program.idle() == expected);
}

TEST(what_made_a_backward_operator_is_not_open_on_its_thread) {
  Program program;
  auto& tree = bragg::CallingContextTree::instance();
  const NodeId forward = scope("idle forward");
  const NodeId state = tree.child(forward, bragg::intern_frame(bragg::FrameKind::State, "[idle backward]"));
  const NodeId zero = scope("idle zero", state);
  program.host(42, 60, zero);
  program.host(40, 61, state);
  program.work(1, 10, forward, 1);
  program.work(60, 90, zero, 55);
  const Times expected{
      {{0, IdleKind::Late, zero}, 30 + 13}, {{0, IdleKind::Late, state}, 2}, {{0, IdleKind::Queued, zero}, 5}};
  CHECK(program.idle() == expected);
}

TEST(pauses_without_a_launch_and_short_ones_are_told_apart) {
  Program program;
  const NodeId mm = scope("idle mm");
  program.work(1, 10, mm, 1);
  program.work(12, 20, mm, 11);
  program.work(50, 60, mm, -1);
  const Times expected{{{0, IdleKind::ShortLate, bragg::kRootNode}, 1},
                       {{0, IdleKind::ShortQueued, bragg::kRootNode}, 1},
                       {{0, IdleKind::NotKnown, bragg::kRootNode}, 30}};
  CHECK(program.idle() == expected);
}

// All was launched long before.
TEST(a_full_queue_goes_on_and_what_depends_on_other_work_waits) {
  Program program;
  const NodeId mm = scope("idle mm"), load = scope("idle load"), add = scope("idle add");
  program.work(100, 110, mm, 0);
  program.work(114, 120, add, 0);                  // behind it
  program.work(124, 130, load, 0, 0, 0, 7, true);  // a copy, which waits for the kernel
  program.work(134, 140, mm, 0);                   // and a kernel for the copy
  program.work(144, 150, add, 0, 0, 0, 13);        // another stream
  program.work(175, 180, add, 0, 0, 0, 13);        // behind it, and longer than that takes: an event
  program.work(182, 190, mm, 0);
  const Times expected{{{0, IdleKind::FullQueue, add}, 4 + 10},
                       {{0, IdleKind::Waited, load}, 4},
                       {{0, IdleKind::Waited, mm}, 4},
                       {{0, IdleKind::Waited, add}, 4 + 15},
                       {{0, IdleKind::ShortWaited, bragg::kRootNode}, 2}};
  CHECK(program.idle() == expected);
}

TEST(each_device_has_its_own_pauses_and_streams_fill_each_others) {
  Program program;
  const NodeId a = scope("idle a"), b = scope("idle b");
  program.host(20, 30, a, 3);
  program.host(20, 40, b, 5);
  program.work(0, 10, a, 0, 0, 3);
  program.work(30, 50, a, 29, 0, 3);
  program.work(0, 40, b, 0, 1, 5);  // two streams of device 1
  program.work(5, 38, b, 0, 1, 5);
  program.work(45, 50, b, 39, 1, 5);
  const Times expected{{{0, IdleKind::Late, a}, 19}, {{0, IdleKind::Queued, a}, 1}, {{1, IdleKind::Queued, b}, 5}};
  CHECK(program.idle() == expected);
}

// 8 s of two threads that launch on two devices: buffers come late and shuffled, while it is settled each second.
TEST(late_records_out_of_order_change_nothing) {
  struct Record {
    int64_t start_us, end_us, launched_us;
    uint32_t device;
    NodeId node;
  };
  const NodeId nodes[] = {scope("idle p"), scope("idle q")};
  std::mt19937 random(7);
  std::vector<Record> records;
  for (int64_t at_us = 100; at_us < 8'000'000; at_us += 100)
    for (uint32_t device = 0; device < 2; ++device)
      records.push_back({at_us + 20 * device, at_us + 30 + 20 * device,
                         at_us + 20 * device - static_cast<int64_t>(random() % 9), device, nodes[random() % 2]});
  const auto play = [&](size_t shuffled_by, bool settles) {
    Program program;
    std::vector<Record> late = records;
    for (size_t i = 0; i + shuffled_by <= late.size(); i += shuffled_by)
      std::shuffle(late.begin() + static_cast<ptrdiff_t>(i), late.begin() + static_cast<ptrdiff_t>(i + shuffled_by),
                   random);
    for (size_t i = 0; i < late.size(); ++i) {
      const Record& host = records[i];  // rings are read in order, and long before
      program.host(host.launched_us - 4, host.launched_us + 1, host.node, host.device);
      const Record& record = late[i];
      program.work(record.start_us, record.end_us, record.node, record.launched_us, record.device, record.device);
      if (settles && i % 20'000 == 19'999) program.activity.settle();
    }
    return std::pair(program.idle(), program.activity.totals().busy_json);
  };
  const auto truth = play(1, false);
  CHECK(play(1, true) == truth);
  CHECK(play(20'000, true) == truth);  // 1 s
  uint64_t idle_us = 0;
  for (const auto& [key, lasts_us] : truth.first) idle_us += lasts_us;
  CHECK_EQ(idle_us, 2 * 70 * (records.size() / 2 - 1));
}

// A server without a GPU: a thread for each request.
TEST(threads_without_end_leave_nothing_behind_where_no_device_works) {
  Program program;
  const NodeId request = scope("idle request");
  for (uint32_t thread = 0; thread < 4'000; ++thread) {
    for (int64_t i = 0; i < 100; ++i) program.host(thread * 100'000 + i, thread * 100'000 + i + 1, request, thread);
    program.activity.settle();
    if (program.activity.host_spans() > 3'000) return bragg::test::fail(__FILE__, __LINE__, "they pile up");
  }
}

TEST(the_host_is_known_for_so_long_before_a_device_works_again) {
  Program program;
  const NodeId request = scope("idle request");
  program.work(1, 10, request, 1);
  for (uint32_t thread = 0; thread < 2'000; ++thread) {
    for (int64_t i = 0; i < 1'000; ++i) program.host(thread * 10'000 + i, thread * 10'000 + i + 1, request, thread);
    if (thread % 100 == 0) program.activity.settle();
  }
  program.activity.settle();
  const size_t spans = program.activity.host_spans();
  CHECK(spans <= bragg::IdleFold::kMaxHostSpans && spans >= bragg::IdleFold::kMaxHostSpans / 4);
}

TEST(idle_rows_are_bounded_however_many_paths_and_hours_there_are) {
  bragg::IdleTable table;
  std::vector<NodeId> nodes;
  for (int i = 0; i < 1000; ++i) nodes.push_back(scope(("idle n" + std::to_string(i)).c_str()));
  uint64_t total_ns = 0;
  for (int64_t i = 0; i < 200'000; ++i) {
    const int64_t start_ns = kStart + i * 50'000'000;  // 10,000 s
    table.add(0, IdleKind::Late, nodes[static_cast<size_t>(i) % nodes.size()], start_ns, start_ns + 7'000);
    total_ns += 7'000;
  }
  table.add(0, IdleKind::Queued, nodes[0], kStart, kStart + 9'000'000'000'000);
  CHECK(table.rows().size() <= bragg::IdleTable::kMaxRows);
  uint64_t late_ns = 0, queued_ns = 0;
  for (const bragg::IdleRow& row : table.rows()) {
    (row.key.kind == IdleKind::Late ? late_ns : queued_ns) += row.idle_ns;
    CHECK_EQ(row.key.start_ns % table.bin_ns(), 0);
  }
  CHECK_EQ(late_ns, total_ns);
  CHECK_EQ(queued_ns, uint64_t{9'000'000'000'000});
}

}  // namespace
