#include "backends/cuda/values/value_slots.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "context/hash.h"

namespace bragg {

using value_kernel::Entry;
using value_kernel::Log;
using value_kernel::Total;

namespace {

// The GPU writes at the same time.
uint64_t load(uint64_t& shared) { return std::atomic_ref(shared).load(std::memory_order_acquire); }

// What was added to a sum since `before`. A sum that was infinite stays infinite.
uint64_t difference(uint64_t sum, uint64_t before, bool is_float) {
  if (!is_float) return sum - before;
  const auto earlier = std::bit_cast<double>(before);
  return std::isfinite(earlier) ? std::bit_cast<uint64_t>(std::bit_cast<double>(sum) - earlier) : sum;
}

}  // namespace

bool PinnedMemory::allocate(const CudaFunctions& cuda, size_t size_bytes, std::string& reason) {
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    reason = std::string("no memory for metric values: ") + std::strerror(errno);
    return false;
  }
  // A copy in a forked child would make this process's next write go to a new page that the GPU does not know.
  (void)madvise(memory, size_bytes, MADV_DONTFORK);
  auto result = cuda.register_memory(memory, size_bytes, cuda::kRegisterPortable | cuda::kRegisterMapped);
  if (result == cuda::Result::Success) result = cuda.device_pointer(&device, memory, 0);
  if (result != cuda::Result::Success) {
    reason = cuda.failure("page-locking memory for metric values", result);
    munmap(memory, size_bytes);
    return false;
  }
  host = memory;
  return true;
}

std::unique_ptr<ValueSlots> ValueSlots::create(const CudaFunctions& cuda, std::string& reason) {
  std::unique_ptr<ValueSlots> self(new ValueSlots);
  cuda::Module module = nullptr;
  if (const auto result = cuda.context_device(&self->device_); result != cuda::Result::Success) {
    reason = cuda.failure("cuCtxGetDevice", result);
    return nullptr;
  }
  if (const auto result = cuda.load_module(&module, value_kernel::kPtx); result != cuda::Result::Success) {
    reason = cuda.failure("loading the kernel that reads metric values", result);
    return nullptr;
  }
  if (const auto result = cuda.module_function(&self->kernel_, module, value_kernel::kName);
      result != cuda::Result::Success) {
    reason = cuda.failure("cuModuleGetFunction", result);
    return nullptr;
  }
  return self->log_memory_.allocate(cuda, sizeof(Log), reason) ? std::move(self) : nullptr;
}

size_t ValueSlots::TargetHash::operator()(const ValueTarget& target) const noexcept {
  return hash_of(pair_of(target.shadow, target.python), pair_of(target.metric, target.length), target.mask);
}

SlotPlace ValueSlots::place_of(const CudaFunctions& cuda, const ValueTarget& target, std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (target.reading != ReadingId::None) return place(append(cuda, target, reason));
  const auto found = slot_of_target_.find(target);
  if (found != slot_of_target_.end()) return place(found->second);
  const uint32_t slot = append(cuda, target, reason);
  if (slot != kNone) slot_of_target_.emplace(target, slot);
  return place(slot);
}

// The slots of one array are neighbours in one page: the kernel adds the element's index to the first.
uint32_t ValueSlots::append(const CudaFunctions& cuda, const ValueTarget& target, std::string& reason) {
  const uint32_t count = std::max(target.length, 1u);
  if (slots_.size() % kPerPage + count > kPerPage) slots_.resize(pages_.size() * kPerPage);
  if (slots_.size() == pages_.size() * kPerPage) {
    PinnedMemory page;
    if (!page.allocate(cuda, kPerPage * sizeof(Total), reason)) return kNone;
    pages_.push_back(page);
  }
  const auto first = static_cast<uint32_t>(slots_.size());
  for (uint32_t index = 0; index < count; ++index) slots_.push_back({static_cast<uint32_t>(targets_.size()), index});
  targets_.push_back(target);
  return first;
}

SlotPlace ValueSlots::place(uint32_t slot) const {
  if (slot == kNone) return {};
  return {slot, pages_[slot / kPerPage].device + slot % kPerPage * sizeof(Total)};
}

ArrivedValue& ValueSlots::add(std::vector<ArrivedValue>& into, uint32_t slot, uint64_t bits, uint64_t count) const {
  return into.emplace_back(ArrivedValue{targets_[slots_[slot].target], slots_[slot].index, count, bits});
}

void ValueSlots::read(std::vector<ArrivedValue>& into) {
  const std::lock_guard lock(mutex_);
  const size_t before = into.size();
  read_log(into);
  read_totals(into);
  uint64_t arrived = 0;
  for (size_t i = before; i < into.size(); ++i)
    arrived += into[i].target.reading == ReadingId::None ? into[i].count : 0;
  arrived_.fetch_add(arrived, std::memory_order_relaxed);
}

void ValueSlots::read_log(std::vector<ArrivedValue>& into) {
  Log& log = *static_cast<Log*>(log_memory_.host);
  const uint64_t first = next_;
  for (;; ++next_) {
    Entry& entry = log.entries[next_ % Log::kCapacity];
    const uint64_t tag = load(entry.tag);
    if (tag >> 32 != static_cast<uint32_t>(next_ + 1)) break;
    (void)add(into, static_cast<uint32_t>(tag), load(entry.bits), 1);
  }
  if (next_ != first) std::atomic_ref(log.read).store(next_, std::memory_order_release);
}

void ValueSlots::read_totals(std::vector<ArrivedValue>& into) {
  const uint64_t overflowed = load(static_cast<Log*>(log_memory_.host)->overflowed);
  if (overflowed == overflowed_) return;
  bool is_complete = true;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) is_complete &= read_total(slot, into);
  if (is_complete) overflowed_ = overflowed;
}

// False: it is being written, the next look will find it.
bool ValueSlots::read_total(uint32_t slot, std::vector<ArrivedValue>& into) {
  Total& total = static_cast<Total*>(pages_[slot / kPerPage].host)[slot % kPerPage];
  const uint64_t version = load(total.version);
  const uint64_t count = load(total.count);
  const uint64_t sum = load(total.sum);
  const uint64_t last = load(total.last);
  if (version % 2 != 0 || load(total.version) != version) return false;
  if (count == 0) return true;
  Taken& taken = taken_[slot];
  if (count == taken.count) return true;
  ArrivedValue& value = add(into, slot, last, count - taken.count);
  if (!value.target.is_property) value.bits = difference(sum, taken.sum, value.target.is_float);
  value.is_unordered = true;
  taken = {count, sum};
  return true;
}

}  // namespace bragg
