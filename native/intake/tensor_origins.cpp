#include "intake/tensor_origins.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "context/hash.h"

namespace bragg::tensor_origins {
namespace {

struct Value {  // a c10::IValue
  uint64_t payload;
  uint32_t tag;
  uint32_t padding;
};
static_assert(sizeof(Value) == 16);

constexpr uint32_t kWordBytes = 8;

// Where objects keep their parts: offsets in bytes, and tags of values.
struct Layout {
  uint32_t inputs = 0;   // of an at::RecordFunction: a c10::ArrayRef
  uint32_t outputs = 0;  // of an at::RecordFunction: a std::vector
  uint32_t list = 0;     // of a list: a std::vector
  uint32_t storage = 0;  // of a tensor
  uint32_t data = 0;     // of a storage
  uint32_t tensor_tag = 0;
  uint32_t list_tag = 0;
};
constinit Layout layout{};  // complete before an observer uses it

// Reading memory through the system cannot crash, wherever an address leads.
class OwnMemory {
 public:
  OwnMemory() noexcept : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {}
  ~OwnMemory() {
    if (file_ >= 0) close(file_);
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  template <class Object>
  [[nodiscard]] bool read(uint64_t address, Object& into) const noexcept {
    return pread(file_, &into, sizeof into, static_cast<off_t>(address)) == static_cast<ssize_t>(sizeof into);
  }
  // Of up to `Count` words from there, as many as can be read; the others are 0.
  template <size_t Count>
  [[nodiscard]] std::array<uint64_t, Count> words(uint64_t address) const noexcept {
    std::array<uint64_t, Count> found{};
    for (size_t i = 0; i < Count; ++i)
      if (!read(address + i * kWordBytes, found[i])) break;
    return found;
  }

 private:
  int file_;
};

// 512 B: an at::RecordFunction is 300 to 400.
constexpr size_t kRunningWords = 64;
constexpr size_t kObjectWords = 8;

// All layouts that fit so far; the outputs are known when the operator has ended.
struct Lesson {
  KnownTensor first;
  KnownTensor second;
  std::vector<Layout> inputs;
  struct Output {
    uint32_t offset;
    Value value;
  };
  std::vector<Output> outputs;
};
Lesson lesson;

std::optional<uint32_t> place_of(uint64_t wanted, std::span<const uint64_t> words) noexcept {
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i] == wanted) return static_cast<uint32_t>(i * kWordBytes);
  return {};
}

// A list of the two tensors whose vector is somewhere in the object.
void learn_list(const OwnMemory& memory, Layout found, const Value& list) {
  const auto words = memory.words<kObjectWords>(list.payload);
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    std::array<Value, 2> items{};
    if (words[i + 1] - words[i] != sizeof items || !memory.read(words[i], items)) continue;
    if (items[0].payload != lesson.first.tensor || items[1].payload != lesson.second.tensor) continue;
    if (items[0].tag != items[1].tag || items[0].tag == list.tag) continue;
    found.list = static_cast<uint32_t>(i * kWordBytes);
    found.tensor_tag = items[0].tag;
    found.list_tag = list.tag;
    lesson.inputs.push_back(found);
  }
}

std::span<const Value> values_at(const std::byte* object, uint32_t offset, bool is_vector) noexcept {
  std::array<uint64_t, 2> words;
  std::memcpy(words.data(), object + offset, sizeof words);
  const auto* first = reinterpret_cast<const Value*>(words[0]);
  return {first, is_vector ? (words[1] - words[0]) / sizeof(Value) : words[1]};
}

uint64_t word_at(uint64_t object, uint32_t offset) noexcept {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(object) + offset, sizeof word);
  return word;
}

// 0: it has none, as sparse and fake tensors.
uint64_t data_of(uint64_t tensor) noexcept {
  const uint64_t storage = word_at(tensor, layout.storage);
  return storage != 0 ? word_at(storage, layout.data) : 0;
}

// The tensors among values, those of lists too, with the number of the value that they are in.
template <class Visit>
void for_each_tensor(std::span<const Value> values, const Visit& visit) noexcept {
  for (uint32_t number = 0; number < values.size(); ++number) {
    const Value& value = values[number];
    if (value.tag == layout.tensor_tag) visit(number, value.payload);
    if (value.tag != layout.list_tag || value.payload == 0) continue;
    for (const Value& item : values_at(reinterpret_cast<const std::byte*>(value.payload), layout.list, true))
      if (item.tag == layout.tensor_tag) visit(number, item.payload);
  }
}

struct Origin {
  ContextNodes nodes;
  uint32_t output = 0;
};

// The makers of the latest 65,536 tensors: 2.5 MB once all are in use. Two that fall onto one place displace each
// other, so that the earlier one's maker is not known. No lock, so that a fork never finds one taken: who reads what is
// being written sees an odd or another version, as each part is stored after the version before and read before the
// version again.
class Origins {
 public:
  void put(uint64_t tensor, uint64_t data, const Origin& origin) noexcept {
    Place& place = place_of(tensor);
    uint32_t version = place.version.load(std::memory_order_relaxed);
    if (version % 2 != 0 || !place.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
      return;  // another thread writes there
    place.tensor.store(tensor, std::memory_order_release);
    place.data.store(data, std::memory_order_release);
    place.nodes.store(std::bit_cast<uint64_t>(origin.nodes), std::memory_order_release);
    place.output.store(origin.output, std::memory_order_release);
    place.epoch.store(epoch_.load(std::memory_order_relaxed), std::memory_order_release);
    place.version.store(version + 2, std::memory_order_release);
  }

  [[nodiscard]] std::optional<Origin> find(uint64_t tensor, uint64_t data) const noexcept {
    const Place& place = place_of(tensor);
    const uint32_t version = place.version.load(std::memory_order_acquire);
    const bool is_it = place.tensor.load(std::memory_order_acquire) == tensor &&
                       place.data.load(std::memory_order_acquire) == data &&
                       place.epoch.load(std::memory_order_acquire) == epoch_.load(std::memory_order_relaxed);
    const Origin origin{std::bit_cast<ContextNodes>(place.nodes.load(std::memory_order_acquire)),
                        place.output.load(std::memory_order_acquire)};
    if (!is_it || version % 2 != 0 || place.version.load(std::memory_order_relaxed) != version) return {};
    return origin;
  }

  void forget_all() noexcept { epoch_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<uint64_t> tensor{0};
    std::atomic<uint64_t> data{0};
    std::atomic<uint64_t> nodes{0};
    std::atomic<uint32_t> output{0};
    std::atomic<uint32_t> epoch{0};
    std::atomic<uint32_t> version{0};
  };
  [[nodiscard]] static size_t index_of(uint64_t tensor) noexcept { return spread(tensor) >> 48; }
  [[nodiscard]] Place& place_of(uint64_t tensor) noexcept { return places_[index_of(tensor)]; }
  [[nodiscard]] const Place& place_of(uint64_t tensor) const noexcept { return places_[index_of(tensor)]; }

  std::array<Place, 1 << 16> places_{};
  std::atomic<uint32_t> epoch_{0};
};
static_assert(sizeof(ContextNodes) == sizeof(uint64_t));
constinit Origins origins;

}  // namespace

void begin_learning(const KnownTensor& first, const KnownTensor& second) noexcept {
  lesson = {.first = first, .second = second, .inputs = {}, .outputs = {}};
}

void learn_inputs(const void* running) noexcept {
  const OwnMemory memory;
  const auto words = memory.words<kRunningWords>(reinterpret_cast<uint64_t>(running));
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    std::array<Value, 2> inputs{};
    if (words[i + 1] != inputs.size() || !memory.read(words[i], inputs)) continue;
    learn_list(memory, {.inputs = static_cast<uint32_t>(i * kWordBytes)}, inputs[0]);
  }
}

void learn_outputs(const void* running) noexcept {
  const OwnMemory memory;
  const auto words = memory.words<kRunningWords>(reinterpret_cast<uint64_t>(running));
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    Value output{};
    if (words[i + 1] - words[i] == sizeof output && memory.read(words[i], output))
      lesson.outputs.push_back({static_cast<uint32_t>(i * kWordBytes), output});
  }
}

bool end_learning(const KnownTensor& output) noexcept {
  const Lesson learned = std::exchange(lesson, {});
  if (learned.inputs.size() != 1) return false;
  Layout found = learned.inputs[0];
  uint32_t fitting = 0;
  for (const Lesson::Output& each : learned.outputs)
    if (each.value.payload == output.tensor && each.value.tag == found.tensor_tag) {
      found.outputs = each.offset;
      ++fitting;
    }
  const OwnMemory memory;
  const auto storage = place_of(output.storage, memory.words<kObjectWords>(output.tensor));
  const auto data = place_of(output.data, memory.words<kObjectWords>(output.storage));
  if (fitting != 1 || !storage || !data) return false;
  found.storage = *storage;
  found.data = *data;
  layout = found;
  return true;
}

void note_inputs(ThreadContext& thread, const void* running, ContextNodes consumer) noexcept {
  const SessionMask mask = recording_state.active.load(std::memory_order_relaxed);
  if (mask == 0) return;
  for_each_tensor(values_at(static_cast<const std::byte*>(running), layout.inputs, false),
                  [&](uint32_t input, uint64_t tensor) {
                    const uint64_t data = data_of(tensor);
                    const std::optional<Origin> origin = data != 0 ? origins.find(tensor, data) : std::nullopt;
                    if (!origin) return;
                    Event event = Event::of(EventKind::Input, mask, consumer);
                    event.input = input;
                    event.origin = {origin->nodes.shadow, origin->nodes.python, origin->output};
                    thread.record(event);
                  });
}

void note_outputs(const void* running, ContextNodes producer) noexcept {
  uint32_t output = 0;
  for_each_tensor(values_at(static_cast<const std::byte*>(running), layout.outputs, true),
                  [&](uint32_t, uint64_t tensor) {
                    if (const uint64_t data = data_of(tensor); data != 0) origins.put(tensor, data, {producer, output});
                    ++output;
                  });
}

void forget_all() noexcept { origins.forget_all(); }

}  // namespace bragg::tensor_origins
