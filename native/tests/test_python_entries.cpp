// Entries that are opened in Python code, on frames that are built here by hand: what is told of the code since.
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "context/clock.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "python_objects.h"

namespace {

using bragg::FrameKind;
using bragg::PythonLayout;
using bragg::Source;
using bragg::ThreadContext;
using bragg::test::IndexFrame;

struct Text {  // a str of one byte for each character
  int64_t length = 1;
  uint32_t state = 1 << bragg::test::kKindShift | bragg::test::kCompact | bragg::test::kAscii;
  std::array<char, 8> data{'f'};
};
constinit Text one_letter;

// Each instruction is in a line of its own, from the first on.
constexpr uint32_t kLines = 100;
struct LineTable {
  int64_t size = 2 * kLines;
  std::array<uint8_t, 2 * kLines> data;
  constexpr LineTable() : data{} {
    for (uint32_t i = 0; i < kLines; ++i) data[2 * i] = 2, data[2 * i + 1] = i == 0 ? 0 : 1;
  }
};
constinit LineTable line_by_line;

struct Code {
  const void* name = &one_letter;
  const void* line_table = &line_by_line;
  int32_t first_line;
};
constinit Code program{.first_line = 0}, function{.first_line = 100};  // static: their addresses are never others'

PythonLayout layout() {
  PythonLayout layout = bragg::test::index_layout<Code, LineTable>();
  layout.code_name = layout.code_file = offsetof(Code, name);
  bragg::test::place_text<Text>(layout);
  return layout;
}

// Of a recording with Python call paths, from the line that the thread is in.
class Program {
 public:
  Program() { bragg::recording_state.python.store(1); }
  ~Program() { bragg::recording_state.python.store(0); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run(IndexFrame& inner) { interpreter_.run(&inner); }

  IndexFrame frame{.code = &program, .last_instruction = 0};

 private:
  bragg::test::Interpreter interpreter_{layout(), &frame};
};

void push(const std::string& name, bragg::EntryOwner owner = nullptr) {
  ThreadContext::current().push_operator(Source::Itt, bragg::intern_frame(FrameKind::Operator, name), owner);
}
void pop(bragg::EntryOwner owner = nullptr) { ThreadContext::current().pop(Source::Itt, owner); }

// Names and lines, outermost first.
std::string path_of(bragg::NodeId node) {
  auto& tree = bragg::CallingContextTree::instance();
  auto& frames = bragg::FrameTable::instance();
  std::string path;
  for (; node != bragg::kRootNode; node = tree.parent(node)) {
    const bragg::Frame frame = frames.frame(tree.frame(node));
    const std::string told =
        frame.kind == FrameKind::Python ? std::to_string(frame.line) : std::string(frames.string(frame.name));
    path = path.empty() ? told : told + " " + path;
  }
  return path;
}

std::string here() { return path_of(ThreadContext::current().here().python); }

// Nanoseconds of what this thread recorded meanwhile, by its path.
class Recording {
 public:
  Recording() {
    (void)ns(bragg::EventKind::Sample);
    bragg::recording_state.active.store(1);
  }
  ~Recording() { bragg::recording_state.active.store(0); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::map<std::string, int64_t> ns(bragg::EventKind kind) {
    ThreadContext::current().ring.drain([&](const bragg::Event& event) { events_.push_back(event); });
    std::map<std::string, int64_t> found;
    for (const bragg::Event& event : events_)
      if (event.kind == kind) found[path_of(event.python)] += event.interval.end_ns - event.interval.start_ns;
    return found;
  }

 private:
  std::vector<bragg::Event> events_;
};

// A recorded program that calls an operator in its first line.
struct InProduct {
  InProduct() {
    in.frame.last_instruction = 1;
    push("product");
  }
  Program in;
  Recording recording;
  ThreadContext& thread = ThreadContext::current();
};

void compute_for(int64_t ns) {
  const int64_t end_ns = bragg::now_ns() + ns;
  while (bragg::now_ns() < end_ns) {
  }
}

TEST(a_sample_that_is_taken_after_operators_of_other_lines_leaves_them_their_time) {
  constexpr int64_t kLeastNs = 1'000'000;
  Program in;
  Recording recording;
  ThreadContext& thread = ThreadContext::current();
  const int64_t began_ns = bragg::now_ns();
  thread.record_sample(1, {began_ns, 0, 0, {}});
  in.frame.last_instruction = 1;
  push("forward");
  const bragg::ContextNodes forward = thread.open_entry();
  compute_for(kLeastNs);
  pop();
  in.frame.last_instruction = 2;
  thread.push_elsewhere(forward, Source::Itt, bragg::intern_frame(FrameKind::State, "backward"));
  compute_for(kLeastNs);
  pop();
  const int64_t end_ns = bragg::now_ns();
  thread.record_sample(1, {end_ns, end_ns - began_ns, 0, {}});
  auto sampled = recording.ns(bragg::EventKind::Sample), measured = recording.ns(bragg::EventKind::Scope);
  CHECK_EQ(sampled["1"], measured["1 forward"]);
  CHECK(sampled["1"] >= kLeastNs && measured["1 forward backward"] >= kLeastNs);
  CHECK_EQ(sampled["2"], end_ns - began_ns - measured["1 forward"] - measured["1 forward backward"]);
}

TEST(what_another_thread_does_once_it_has_left_an_operator_is_not_below_it) {
  InProduct program_in_product;
  auto& [in, recording, thread] = program_in_product;
  const bragg::ContextNodes product = thread.open_entry();
  IndexFrame inner{.back = &in.frame, .code = &function, .last_instruction = 3};
  in.run(inner);
  CHECK(thread.record_sample_of(1, {7, 100, 10, product, bragg::PythonFrameIterator(), false}));
  pop();
  in.frame.last_instruction = 2;
  CHECK(thread.record_sample_of(1, {7, 200, 20, product, bragg::PythonFrameIterator(), false}));
  CHECK((recording.ns(bragg::EventKind::Sample) ==
         std::map<std::string, int64_t>{{"1 product 103", 10}, {"1 product", 20}}));
}

TEST(an_entry_that_has_no_node_below_pythons_frames_is_around_none_of_them) {
  InProduct program_in_product;
  auto& [in, recording, thread] = program_in_product;
  const bragg::ContextNodes product{thread.open_entry().shadow, bragg::kRootNode};
  CHECK(thread.record_sample_of(1, {7, 100, 10, product, bragg::PythonFrameIterator(), false}));
  pop();
  CHECK((recording.ns(bragg::EventKind::Sample) == std::map<std::string, int64_t>{{"1", 10}}));
}

TEST(what_a_thread_that_has_ended_ran_is_told_where_that_is_known_and_else_without_a_place) {
  InProduct program_in_product;
  auto& [in, recording, thread] = program_in_product;
  const bragg::ContextNodes product = thread.open_entry();
  pop();
  const bragg::PythonFrameIterator none(nullptr);
  CHECK(!thread.record_sample_of(1, {7, 100, 10, {}, none, false}));
  CHECK(thread.record_sample_of(1, {7, 100, 10, {}, none, true}));
  CHECK(thread.record_sample_of(1, {7, 200, 20, product, none, true}));
  CHECK((recording.ns(bragg::EventKind::Sample) ==
         std::map<std::string, int64_t>{{"[ended threads]", 10}, {"1 product", 20}}));
}

TEST(lines_since_an_entry_was_opened_are_told_below_it_also_when_it_was_opened_in_another_ones_line) {
  Program in;
  in.frame.last_instruction = 1;
  push("outer");
  CHECK_EQ(here(), "1 outer");
  push("inner");
  CHECK_EQ(here(), "1 outer inner");
  in.frame.last_instruction = 2;
  CHECK_EQ(here(), "1 outer inner 2");
  IndexFrame callee{1, &in.frame, &function, 3};
  in.run(callee);
  CHECK_EQ(here(), "1 outer inner 2 103");
  push("called");
  callee.last_instruction = 4;
  push("next");
  CHECK_EQ(here(), "1 outer inner 2 103 called 104 next");
  in.run(in.frame);
  CHECK_EQ(here(), "1 outer inner 2 103 called 104 next");  // where "next" was opened in turn
  pop();
  pop();
  CHECK_EQ(here(), "1 outer inner 2");
  pop();
  pop();
  CHECK_EQ(here(), "2");
}

// Twice: the second time all are known. Both frames are of one function, so each path has one of the same lines in the
// other order.
TEST(an_operator_is_below_the_lines_that_it_is_called_from_however_many_such_places_there_are) {
  Program in;
  IndexFrame outer{1, &in.frame, &function, 0}, inner{1, &outer, &function, 0};
  in.run(inner);
  for (int pass = 0; pass < 2; ++pass)
    for (outer.last_instruction = 0; outer.last_instruction < 60; ++outer.last_instruction)
      for (inner.last_instruction = 0; inner.last_instruction < 60; ++inner.last_instruction) {
        const std::string lines =
            "0 " + std::to_string(100 + outer.last_instruction) + " " + std::to_string(100 + inner.last_instruction);
        push("first");
        CHECK_EQ(here(), lines + " first");
        pop();
        push("second");
        CHECK_EQ(here(), lines + " second");
        pop();
        CHECK_EQ(here(), lines);
      }
}

// Below an entry that a function opened, its caller's line is told only when that has moved on.
TEST(entries_that_are_removed_from_among_others_leave_them_the_lines_that_they_were_opened_in) {
  Program in;
  IndexFrame callee{1, &in.frame, &function, 0};
  std::array<int, 150> owners{};
  std::string opened;
  for (size_t i = 0; i < owners.size(); ++i) {
    in.frame.last_instruction = static_cast<int32_t>(i % 50);
    callee.last_instruction = static_cast<int32_t>(i % 50);
    in.run(callee);
    push("range", &owners[i]);
    opened = here();
    push("inner");
    pop();
    in.run(in.frame);
    CHECK_EQ(here(), opened);
    if (i >= 3) pop(&owners[i - 3]);
  }
  CHECK_EQ(ThreadContext::current().depth(), 3u);
  in.frame.last_instruction = 60;
  CHECK_EQ(here(), opened + " 60");
  for (const size_t i : {147, 148, 149}) pop(&owners[i]);
  CHECK_EQ(here(), "60");
}

}  // namespace
