// Observers of PyTorch's operators, on a stand-in for its library.
#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/collective_progress.h"
#include "intake/record_function.h"
#include "thread_path.h"

namespace {

using bragg::test::here;

constexpr const char* kLibrary = BRAGG_FAKES_DIR "/torch/libtorch_cpu.so";
constexpr uint32_t kFunction = 0, kBackwardFunction = 1, kUserScope = 7;

struct Library {
  void* handle = dlopen(kLibrary, RTLD_NOW);
  void* (*begin)(const char*, uint32_t, int) = reinterpret_cast<decltype(begin)>(dlsym(handle, "fake_begin"));
  void (*end)(void*) = reinterpret_cast<decltype(end)>(dlsym(handle, "fake_end"));
  void (*collective)(const char*, int, const char*, int64_t,
                     int) = reinterpret_cast<decltype(collective)>(dlsym(handle, "fake_collective"));
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

class Operator {
 public:
  explicit Operator(const std::string& name, uint32_t scope = kFunction, bool is_async = false)
      : running_(library().begin(name.c_str(), scope, is_async ? 1 : 0)) {}
  ~Operator() { end(); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  void end() {
    if (running_ != nullptr) library().end(running_);
    running_ = nullptr;
  }

 private:
  void* running_;
};

std::string begin_trial() {
  (void)library();
  return bragg::record_function::begin_trial(kLibrary);
}

std::string trial_of(const std::string& name) {
  const std::string refusal = begin_trial();
  if (!refusal.empty()) return refusal;
  {
    const Operator run(name);
  }
  return bragg::record_function::end_trial("aten::empty");
}

class Observing {
 public:
  Observing() {
    if (!trial_of("aten::empty").empty()) std::abort();
    bragg::recording_state.existing.store(1);
    if (!bragg::record_function::observe(false)) std::abort();
  }
  ~Observing() {
    bragg::record_function::stop_observing();
    bragg::recording_state.existing.store(0);
  }
};

TEST(a_trial_tells_a_library_that_is_not_loaded_or_lacks_functions) {
  CHECK(bragg::record_function::begin_trial("/nowhere/libtorch_cpu.so").ends_with("is not loaded"));
  CHECK_EQ(bragg::record_function::begin_trial("libc.so.6"), "it lacks a function that observers need");
}

TEST(a_trial_tells_operators_that_are_not_the_expected_one) {
  CHECK_EQ(trial_of("aten::empty"), "");
  CHECK_EQ(trial_of("aten::zeros"), "its operators have other names: aten::zeros");
  REQUIRE(begin_trial().empty());
  CHECK_EQ(bragg::record_function::end_trial("aten::empty"), "it calls no observer");
}

TEST(a_trial_tells_an_operator_that_has_not_ended) {
  REQUIRE(begin_trial().empty());
  Operator open("aten::empty");
  CHECK_EQ(bragg::record_function::end_trial("aten::empty"), "its operators do not end as they begin");
}

TEST(operators_are_entries_below_each_other_until_they_end) {
  const Observing observing;
  {
    const Operator outer("aten::linear");
    const Operator inner("aten::addmm");
    CHECK_EQ(here(), "aten::linear > aten::addmm");
  }
  CHECK_EQ(here(), "");
}

TEST(names_of_ranges_at_one_address_are_told_apart) {
  const Observing observing;
  for (const std::string name : {"first", "second", "third", "first"}) {
    const Operator range(name, kUserScope);
    CHECK_EQ(here(), name);
  }
}

TEST(a_node_that_the_engine_evaluates_is_two_entries_and_its_function_none) {
  const Observing observing;
  {
    const Operator range("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    const Operator function("torch::autograd::AccumulateGrad", kBackwardFunction);
    CHECK_EQ(here(),
             "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad > torch::autograd::AccumulateGrad");
  }
  CHECK_EQ(here(), "");
}

TEST(operators_may_end_in_any_order) {
  const Observing observing;
  Operator outer("outer");
  Operator inner("inner");
  outer.end();
  CHECK_EQ(here(), "outer > inner");
  const Operator next("next");
  CHECK_EQ(here(), "outer > inner > next");
  inner.end();
}

TEST(an_operator_that_ends_on_another_thread_is_closed_by_its_own) {
  const Observing observing;
  {
    Operator left("left open");
    std::thread([&] { left.end(); }).join();
    const Operator next("next");
    CHECK_EQ(here(), "next");
  }
  CHECK_EQ(here(), "");
}

TEST(operators_of_a_schema_may_end_in_any_order_and_after_what_was_not_recorded) {
  const Observing observing;
  Operator outer("aten::linear");
  Operator inner("aten::addmm");
  {
    const Operator collective("nccl:all_reduce", kFunction, true);
    outer.end();
    CHECK_EQ(bragg::ThreadContext::current().depth(), 1);
    CHECK_EQ(here(), "aten::linear > aten::addmm");
  }
  CHECK_EQ(bragg::ThreadContext::current().depth(), 1);
  {
    const Operator range("a range of the program", kUserScope);
    inner.end();
    CHECK_EQ(bragg::ThreadContext::current().depth(), 1);
  }
  CHECK_EQ(here(), "");
}

TEST(a_range_that_is_called_as_an_operator_is_closed_by_its_own_thread_too) {
  const Observing observing;
  const Operator first("aten::add");
  {
    Operator left("aten::add", kUserScope);
    CHECK_EQ(here(), "aten::add > aten::add");
    std::thread([&] { left.end(); }).join();
    const Operator next("aten::mul");
    CHECK_EQ(here(), "aten::add > aten::mul");
  }
  CHECK_EQ(here(), "aten::add");
}

TEST(operators_beyond_the_most_that_may_be_open_end_before_those_that_are) {
  const Observing observing;
  const uint32_t depth = bragg::ThreadContext::current().depth();
  std::vector<std::unique_ptr<Operator>> open;
  for (int i = 0; i < 5'000; ++i) open.push_back(std::make_unique<Operator>("aten::relu"));
  const uint32_t most = bragg::ThreadContext::current().depth();
  CHECK_EQ(most, 4096);
  while (open.size() > most) open.pop_back();
  CHECK_EQ(bragg::ThreadContext::current().depth(), most);
  while (open.size() > 10) open.pop_back();
  CHECK_EQ(bragg::ThreadContext::current().depth(), depth + 10);
  open.clear();
  CHECK_EQ(bragg::ThreadContext::current().depth(), depth);
}

TEST(a_collective_is_named_by_what_is_sent_and_by_its_group) {
  const Observing observing;
  constexpr int kHalf = 5, kUnknown = 99;
  const auto path_of = [](const char* group, int n_ranks, const char* name, int64_t n_inputs, int type) {
    library().collective(group, n_ranks, name, n_inputs, type);
    const Operator running("record_param_comms");
    return here();
  };
  CHECK_EQ(path_of("0", 8, "allreduce", 1024, kHalf), "collective allreduce[1024 f16, group 0 of 8]");
  CHECK_EQ(path_of("mesh_tensor_parallel_0", 2, "_reduce_scatter_base", 7, kUnknown),
           "collective _reduce_scatter_base[7 elements, group mesh_tensor_parallel_0 of 2]");
  CHECK_EQ(path_of("0", 0, "allreduce", 1024, kHalf), "record_param_comms");
  CHECK_EQ(path_of(nullptr, 0, "", 0, 0), "record_param_comms");
}

TEST(collectives_are_counted_by_group_when_they_are_entered) {
  const Observing observing;
  const auto entered = [](const std::string& group) {
    struct Told {
      std::string group, last;
      uint64_t count = 0;
    } told{group, "", 0};
    bragg::collective_progress::tell_all(
        [](void* context, const bragg::collective_progress::Entered& each) {
          auto& into = *static_cast<Told*>(context);
          if (into.group == each.group) into = {each.group, each.last, each.count};
        },
        &told);
    return told.last + " " + std::to_string(told.count);
  };
  for (const char* name : {"allreduce", "broadcast"}) {
    library().collective("pp", 3, name, 1, 0);
    const Operator running("record_param_comms");
  }
  library().collective(nullptr, 0, "", 0, 0);
  const Operator plain("record_param_comms");
  const Operator inside("nccl:all_reduce", kFunction, true);
  const Operator gloo("gloo:barrier", kFunction, true);
  CHECK_EQ(entered("group pp of 3"), "broadcast 2");
  CHECK_EQ(entered("gloo"), "gloo:barrier 1");
  CHECK_EQ(entered("nccl"), " 0");
}

TEST(an_asynchronous_operator_is_no_part_of_the_path) {
  const Observing observing;
  const Operator collective("gloo:all_reduce", kFunction, true);
  const Operator next("aten::add");
  CHECK_EQ(here(), "aten::add");
}

TEST(an_operator_that_began_before_a_session_or_ends_after_it_leaves_nothing) {
  Operator before("before");
  {
    const Observing observing;
    before.end();
    CHECK_EQ(here(), "");
  }
  Operator* open = nullptr;
  {
    const Observing observing;
    open = new Operator("open");
  }
  delete open;
  CHECK_EQ(here(), "");
}

TEST(an_annotation_of_what_was_observed_is_told_already) {
  using bragg::autograd::TaskKind;
  const auto frame = [](const char* name) { return bragg::intern_frame(bragg::FrameKind::Operator, name); };
  CHECK(!bragg::record_function::is_told(frame("aten::exp"), TaskKind::Operator));
  const Observing observing;
  const Operator exp("aten::exp");
  CHECK(bragg::record_function::is_told(frame("aten::exp"), TaskKind::Operator));
  CHECK(!bragg::record_function::is_told(frame("a range of the program"), TaskKind::Operator));
  CHECK(!bragg::record_function::is_told(frame("aten::exp"), TaskKind::Other));
  CHECK(bragg::record_function::is_told(frame("autograd::engine::evaluate_function: ExpBackward0"), TaskKind::Node));
}

TEST(observing_may_begin_and_end_while_operators_run) {
  std::atomic<bool> goes_on{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (goes_on.load()) {
        const Operator outer("aten::linear");
        const Operator inner("aten::addmm");
      }
      CHECK_EQ(here(), "");
    });
  for (int i = 0; i < 200; ++i) {
    const Observing observing;
  }
  goes_on.store(false);
  for (std::thread& thread : threads) thread.join();
}

TEST(a_library_that_tells_no_shapes_is_observed_without) {
  CHECK_EQ(trial_of("aten::empty"), "");
  CHECK(!bragg::record_function::observe(true));
  bragg::record_function::stop_observing();
}

}  // namespace
