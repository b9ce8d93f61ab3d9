// The ITT collector, driven as two statically linked copies of ittnotify drive it.
#include <pthread.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "context/recording_state.h"
#include "context/thread_context.h"
#include "intake/itt.h"

namespace {

using bragg::FrameKind;
using bragg::itt::ApiEntry;
using bragg::itt::Domain;
using bragg::itt::Id;
using bragg::itt::StringHandle;

// What one linked copy holds: function pointers, and the list a collector sets them through.
class Copy {
 public:
  Copy() {
    global_.api_list = entries_.data();
    __itt_api_init(reinterpret_cast<bragg::itt::Global*>(&global_), 0);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  Domain* (*domain_create)(const char*) = nullptr;
  StringHandle* (*string_handle_create)(const char*) = nullptr;
  void (*task_begin)(const Domain*, Id, Id, StringHandle*) = nullptr;
  void (*task_end)(const Domain*) = nullptr;
  int (*unknown)() = nullptr;

  void begin(const Domain* domain, const char* name) const { task_begin(domain, {}, {}, string_handle_create(name)); }

 private:
  template <class Function>
  static ApiEntry entry(const char* name, Function*& function) {
    return {name, reinterpret_cast<void**>(&function), nullptr, reinterpret_cast<void*>(null_function), 0};
  }
  static int null_function() { return 42; }

  std::array<ApiEntry, 6> entries_{
      entry("__itt_domain_create", domain_create), entry("__itt_string_handle_create", string_handle_create),
      entry("__itt_task_begin", task_begin),       entry("__itt_task_end", task_end),
      entry("__itt_of_a_later_version", unknown),  ApiEntry{}};
  // As ittnotify 3 declares it.
  struct {
    uint8_t magic[8];
    unsigned long version[3];
    long state[3];
    pthread_mutex_t mutex;
    void* pointers[3];
    const ApiEntry* api_list;
  } global_{};
};

class ExistingSession {
 public:
  ExistingSession() { bragg::recording_state.existing.store(1); }
  ~ExistingSession() { bragg::recording_state.existing.store(0); }
};

struct Open {
  FrameKind kind;
  std::string name;
  friend bool operator==(const Open&, const Open&) = default;
};

// The open entries of this thread, outermost first.
std::vector<Open> context() {
  auto& tree = bragg::CallingContextTree::instance();
  auto& frames = bragg::FrameTable::instance();
  std::vector<Open> open;
  for (auto node = bragg::ThreadContext::current().here().shadow; node != bragg::kRootNode; node = tree.parent(node)) {
    const bragg::Frame frame = frames.frame(tree.frame(node));
    open.insert(open.begin(), {frame.kind, std::string(frames.string(frame.name))});
  }
  return open;
}

TEST(functions_without_an_implementation_get_the_null_function) {
  const Copy copy;
  REQUIRE(copy.unknown != nullptr);
  CHECK_EQ(copy.unknown(), 42);
}

TEST(copies_share_domains_and_handles) {
  const Copy torch, module;
  CHECK(torch.domain_create("PyTorch") == module.domain_create("PyTorch"));
  CHECK(torch.domain_create("PyTorch") != torch.domain_create("mine"));
  CHECK_EQ(torch.domain_create("mine")->flags, 1);
  StringHandle* handle = torch.string_handle_create("aten::mm");
  CHECK(handle == module.string_handle_create(std::string("aten::mm").c_str()));
  CHECK_EQ(std::string(handle->name), "aten::mm");
}

TEST(tasks_of_torch_and_onednn_are_operators_and_others_scopes) {
  const ExistingSession session;
  const Copy copy;
  const Domain* torch = copy.domain_create("PyTorch");
  const Domain* dnnl = copy.domain_create("dnnl::primitive::execute");
  const Domain* mine = copy.domain_create("mine");
  copy.begin(mine, "step");
  copy.begin(torch, "aten::conv2d");
  copy.begin(dnnl, "convolution");
  CHECK(context() == (std::vector<Open>{{FrameKind::Scope, "step"},
                                        {FrameKind::Operator, "aten::conv2d"},
                                        {FrameKind::Operator, "dnnl::primitive::execute::convolution"}}));
  copy.task_end(dnnl);
  copy.begin(mine, "convolution");  // the same handle in another domain
  CHECK(context().back() == (Open{FrameKind::Scope, "convolution"}));
  for (const Domain* domain : {mine, torch, mine}) copy.task_end(domain);
  CHECK(context().empty());
}

TEST(a_domain_made_before_the_collector_came_is_understood) {
  const ExistingSession session;
  const Copy copy;
  static Domain early{.name = "PyTorch"};
  static StringHandle name{.name = "aten::add"};
  copy.task_begin(&early, {}, {}, &name);
  CHECK(context() == (std::vector<Open>{{FrameKind::Operator, "aten::add"}}));
  copy.task_end(&early);
}

TEST(an_end_takes_away_only_what_its_begin_pushed) {
  const Copy copy;
  const Domain* domain = copy.domain_create("mine");
  copy.begin(domain, "before the session");
  {
    const ExistingSession session;
    copy.begin(domain, "outer");
    bragg::recording_state.existing.store(0);
    copy.begin(domain, "between sessions");
    bragg::recording_state.existing.store(1);
    copy.begin(domain, "inner");
    CHECK(context() == (std::vector<Open>{{FrameKind::Scope, "outer"}, {FrameKind::Scope, "inner"}}));
    copy.task_end(domain);
    copy.task_end(domain);
    CHECK(context() == (std::vector<Open>{{FrameKind::Scope, "outer"}}));
  }
  copy.task_end(domain);  // pushed: taken away although no session exists any more
  CHECK(context().empty());
  copy.task_end(domain);
  copy.task_end(domain);  // one too many
  CHECK(context().empty());
}

TEST(deep_nesting_is_undone_completely) {
  const ExistingSession session;
  const Copy copy;
  const Domain* domain = copy.domain_create("PyTorch");
  for (int i = 0; i < 300; ++i) copy.begin(domain, "aten::nested");
  CHECK_EQ(context().size(), 300u);
  for (int i = 0; i < 300; ++i) copy.task_end(domain);
  CHECK(context().empty());
}

TEST(threads_may_intern_and_nest_at_once) {
  const ExistingSession session;
  const Copy copy;
  constexpr int kThreads = 4, kNames = 500;
  std::array<std::array<StringHandle*, kNames>, kThreads> handles{};
  std::atomic<int> wrong_depths{0};
  std::vector<std::thread> threads;
  for (auto& mine : handles)
    threads.emplace_back([&copy, &mine, &wrong_depths] {
      const Domain* domain = copy.domain_create("from threads");
      for (int i = 0; i < kNames; ++i) {
        mine[static_cast<size_t>(i)] = copy.string_handle_create(("name " + std::to_string(i)).c_str());
        copy.task_begin(domain, {}, {}, mine[static_cast<size_t>(i)]);
        if (bragg::ThreadContext::current().depth() != 1) ++wrong_depths;
        copy.task_end(domain);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong_depths.load(), 0);
  for (const auto& other : handles) CHECK(other == handles[0]);
}

// Last: it takes the places of the process.
TEST(names_without_end_become_one_name) {
  const Copy copy;
  StringHandle* last = nullptr;
  for (int i = 0; i < (1 << 18) + 10; ++i) last = copy.string_handle_create(("step " + std::to_string(i)).c_str());
  CHECK_EQ(std::string(last->name), "<other names>");
  CHECK(copy.string_handle_create("one more") == last);
  CHECK_EQ(std::string(copy.string_handle_create("step 7")->name), "step 7");
  CHECK_EQ(std::string(copy.string_handle_create("aten::late")->name), "aten::late");
}

}  // namespace
