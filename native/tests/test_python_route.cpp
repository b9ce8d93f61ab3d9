// A walk that remembers the last one tells what one without memory does, whatever frames came and went between them.
#include <array>
#include <cstddef>
#include <optional>
#include <random>

#include "check.h"
#include "context/python_route.h"
#include "python_objects.h"

namespace {

using bragg::OpeningFrames;
using bragg::PythonFrameIterator;
using bragg::PythonPath;
using bragg::PythonRoute;
using bragg::RawFrame;
using bragg::test::none;
using bragg::test::PointerFrame;
using bragg::test::tagged;

struct LineTable {
  int64_t size = 0;
  std::array<uint8_t, 2> data{};
};
struct Code {
  int32_t first_line = 1;
  const void* line_table = nullptr;
  std::array<uint16_t, 4> instructions{};
};
alignas(16) std::array<Code, 3> codes;
alignas(16) Code own;  // of the interpreter's frames

// A stack of frames whose memory is used again. A generator's frame lies elsewhere.
class Program {
 public:
  void call(size_t code, bool is_internal = false, bool is_generator = false) {
    PointerFrame& frame = is_generator ? generators_[depth_ % generators_.size()] : stack_[depth_];
    for (const PointerFrame* each = inner_; each != nullptr; each = each->previous)
      if (each == &frame) return;
    Code& runs = is_internal ? own : codes[code];
    frame = {tagged(&runs), inner_, is_internal ? tagged(&none) : 8, runs.instructions.data(), 0};
    frame.owner = is_internal && depth_ % 2 == 0 ? 3 : 0;
    run(&frame, depth_ + 1);
  }
  void leave() {
    if (depth_ > 0) run(inner_->previous, depth_ - 1);
  }
  void go_on(size_t instruction) {
    if (depth_ > 0 && &code_of(*inner_) != &own)
      inner_->instruction = code_of(*inner_).instructions.data() + instruction;
  }
  // As `__enter__` does: the frame that opens it may be gone soon.
  void open_entry() {
    opened_in_ = {};
    PythonFrameIterator frames;
    for (RawFrame& raw : opened_in_->frames)
      if (!frames.next(raw)) break;
    ++opening_;
  }
  void close_entry() { opened_in_.reset(); }

  [[nodiscard]] std::optional<PythonPath> follow(PythonRoute& route) const {
    return route.follow(PythonFrameIterator(), opened_in_ ? &*opened_in_ : nullptr, opened_in_ ? opening_ : 0);
  }
  // As the frames themselves tell, without the hash.
  [[nodiscard]] PythonPath told() const {
    PythonPath path{};
    PythonFrameIterator frames;
    for (RawFrame raw{}; !path.reached_opening && frames.next(raw);) {
      const RawFrame* opener = opened_in_ ? opened_in_->find(raw) : nullptr;
      path.reached_opening = opener != nullptr;
      if (opener == nullptr || opener->instruction_offset != raw.instruction_offset) ++path.n_frames;
    }
    return path;
  }
  [[nodiscard]] uint32_t depth() const { return depth_; }

 private:
  static Code& code_of(const PointerFrame& frame) { return *reinterpret_cast<Code*>(frame.executable & ~uintptr_t{3}); }
  void run(PointerFrame* inner, uint32_t depth) {
    inner_ = inner;
    depth_ = depth;
    interpreter_.run(inner);
  }

  bragg::test::Interpreter interpreter_{bragg::test::pointer_layout<Code, LineTable>(), nullptr};
  std::array<PointerFrame, 400> stack_;
  std::array<PointerFrame, 8> generators_;
  PointerFrame* inner_ = nullptr;
  uint32_t depth_ = 0, opening_ = 0;
  std::optional<OpeningFrames> opened_in_;
};

TEST(a_route_tells_what_a_walk_without_memory_does) {
  constexpr uint32_t kSeeds = 20, kWalks = 3'000;
  uint32_t followed = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    const auto one_in = [&random](uint32_t n) { return random() % n == 0; };
    Program program;
    PythonRoute route;
    for (uint32_t i = 0; i < kWalks; ++i) {
      for (uint32_t calls = random() % 4; calls > 0; --calls)
        program.call(random() % codes.size(), one_in(4), one_in(8));
      for (uint32_t returns = random() % (program.depth() > 60 ? 30 : 4); returns > 0; --returns) program.leave();
      if (!one_in(3)) program.go_on(random() % 4);
      if (one_in(20)) program.open_entry();
      if (one_in(40)) program.close_entry();
      PythonRoute without_memory;
      const auto expected = program.follow(without_memory), found = program.follow(route);
      const PythonPath told = program.told();
      REQUIRE(expected.has_value());
      CHECK_EQ(expected->n_frames, told.n_frames);
      CHECK_EQ(expected->reached_opening, told.reached_opening);
      if (!found) continue;  // what was remembered ends elsewhere
      ++followed;
      CHECK_EQ(found->hash, expected->hash);
      CHECK_EQ(found->n_frames, expected->n_frames);
      CHECK_EQ(found->reached_opening, expected->reached_opening);
    }
  }
  CHECK(followed > kSeeds * kWalks * 9 / 10);
}

TEST(each_instruction_of_a_route_is_part_of_its_hash) {
  Program program;
  PythonRoute route;
  program.call(0);
  program.call(1);
  const auto first = program.follow(route);
  REQUIRE(first.has_value());
  CHECK_EQ(first->n_frames, 2);
  program.leave();
  program.go_on(1);
  program.call(1);
  const auto moved = program.follow(route);
  REQUIRE(moved.has_value());
  CHECK(moved->hash != first->hash);
  program.leave();
  program.go_on(0);
  program.call(1);
  CHECK_EQ(program.follow(route)->hash, first->hash);
}

TEST(a_route_has_no_room_for_some_stacks_and_then_has_again) {
  Program program;
  PythonRoute route;
  for (int i = 0; i < 300; ++i) program.call(0);
  CHECK(!program.follow(route));
  while (program.depth() > 100) program.leave();
  REQUIRE(program.follow(route).has_value());
  CHECK_EQ(program.follow(route)->n_frames, 100);
}

}  // namespace
