// Which operators made the inputs of others, on objects laid out as some PyTorch might.
#include <array>
#include <bit>
#include <vector>

#include "check.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/tensor_origins.h"

namespace {

namespace origins = bragg::tensor_origins;
using bragg::ContextNodes;

struct Value {
  const void* payload;
  uint64_t tag;
};
constexpr uint64_t kNumber = 4, kTensor = 1, kList = 7;

struct Storage {
  uint64_t header[3] = {};
  const void* data;
};
struct Tensor {
  uint64_t header[2] = {};
  const Storage* storage;
};
struct List {
  uint64_t header[2] = {};
  std::vector<Value> items;
};
struct Running {
  uint64_t header[9] = {};
  const Value* inputs = nullptr;
  uint64_t n_inputs = 0;
  uint64_t between = 0;
  std::vector<Value> outputs;
  std::array<uint64_t, 64> after = {};

  void take(const std::vector<Value>& values) {
    inputs = values.data();
    n_inputs = values.size();
  }
};

// With a number as its data.
struct Made {
  explicit Made(uint64_t data_address) : storage{.data = reinterpret_cast<const void*>(data_address)} {}
  Storage storage;
  Tensor tensor{.storage = &storage};
  [[nodiscard]] Value value() const { return {&tensor, kTensor}; }
  [[nodiscard]] origins::KnownTensor known() const {
    return {std::bit_cast<uint64_t>(&tensor), std::bit_cast<uint64_t>(&storage), std::bit_cast<uint64_t>(storage.data)};
  }
};

// From an operator that has both tensors in its inputs, in some way.
bool learn_from(const Made& first, const Made& second, const std::vector<Value>& inputs) {
  const Made output(0x3000);
  Running running;
  running.take(inputs);
  origins::begin_learning(first.known(), second.known());
  origins::learn_inputs(&running);
  running.outputs = {output.value()};
  origins::learn_outputs(&running);
  return origins::end_learning(output.known());
}

bool learn() {
  const Made first(0x1000), second(0x2000);
  const List list{.items = {first.value(), second.value()}};
  return learn_from(first, second, {{&list, kList}, {nullptr, kNumber}});
}

struct Input {
  uint32_t number;
  uint32_t producer;
  uint32_t output;
  friend bool operator==(const Input&, const Input&) = default;
};

// What is recorded of an operator with these inputs.
std::vector<Input> inputs_of(const std::vector<Value>& values) {
  Running running;
  running.take(values);
  auto& thread = bragg::ThreadContext::current();
  thread.ring.drain([](const bragg::Event&) {});
  bragg::recording_state.active.store(1);
  origins::note_inputs(thread, &running, {.shadow = bragg::NodeId{9}, .python = bragg::NodeId{9}});
  bragg::recording_state.active.store(0);
  std::vector<Input> found;
  thread.ring.drain([&](const bragg::Event& event) {
    if (event.kind != bragg::EventKind::Input) return;
    found.push_back({event.input, number_of(event.origin.shadow), event.origin.output});
  });
  return found;
}

void make(std::vector<Value> outputs, uint32_t producer) {
  Running running;
  running.outputs = std::move(outputs);
  origins::note_outputs(&running, {.shadow = bragg::NodeId{producer}, .python = bragg::NodeId{producer}});
}

TEST(an_input_is_known_by_the_operator_that_made_it) {
  REQUIRE(learn());
  const Made one(0x100), other(0x200), unknown(0x300);
  make({one.value()}, 3);
  make({{nullptr, kNumber}, other.value()}, 4);
  CHECK((inputs_of({unknown.value(), one.value(), {nullptr, kNumber}, other.value()}) ==
         std::vector<Input>{{1, 3, 0}, {3, 4, 0}}));
}

TEST(tensors_of_lists_are_inputs_and_outputs_too) {
  REQUIRE(learn());
  const Made one(0x100), other(0x200);
  const List parts{.items = {one.value(), other.value(), {nullptr, kNumber}}};
  make({{&parts, kList}}, 5);
  CHECK((inputs_of({{nullptr, kNumber}, {&parts, kList}}) == std::vector<Input>{{1, 5, 0}, {1, 5, 1}}));
}

TEST(the_operator_that_returned_a_tensor_last_made_it) {
  REQUIRE(learn());
  const Made one(0x100);
  make({one.value()}, 3);
  make({one.value()}, 4);
  CHECK((inputs_of({one.value()}) == std::vector<Input>{{0, 4, 0}}));
}

TEST(a_tensor_at_the_address_of_another_one_is_not_taken_for_it) {
  REQUIRE(learn());
  Made one(0x100);
  make({one.value()}, 3);
  one.storage.data = reinterpret_cast<const void*>(0x180);
  CHECK(inputs_of({one.value()}).empty());
  one.storage.data = reinterpret_cast<const void*>(0x100);
  CHECK_EQ(inputs_of({one.value()}).size(), 1u);
  origins::forget_all();
  CHECK(inputs_of({one.value()}).empty());
}

TEST(a_tensor_without_memory_has_no_origin) {
  REQUIRE(learn());
  const Made empty(0);
  Made sparse(0x100);
  sparse.tensor.storage = nullptr;
  make({empty.value(), sparse.value()}, 3);
  CHECK(inputs_of({empty.value(), sparse.value()}).empty());
}

TEST(objects_that_are_laid_out_otherwise_are_not_learned) {
  const Made first(0x1000), second(0x2000);
  CHECK((!learn_from(first, second, {first.value(), second.value()})));
}

}  // namespace
