#include "backends/nccl/nccl_source.h"

#include <algorithm>
#include <new>
#include <utility>

#include "context/loaded_library.h"

namespace bragg {

void NcclSource::begin_phase(const SourceOptions& options) {
  if (!options.nccl) return;
  const std::lock_guard lock(mutex_);
  calls_.begin_phase(options.phase);
  is_wanted_.store(true);
  was_wanted_ = true;
}

void NcclSource::end_phase(const SourceOptions& options) {
  if (!options.nccl) return;
  const std::lock_guard lock(mutex_);
  calls_.end_phase(options.phase);
  is_wanted_.store(calls_.is_wanted());
}

// Its version says why a program's NCCL has loaded no plug-in.
void NcclSource::look() {
  if (!was_wanted_ || version_ != 0) return;
  const std::lock_guard lock(look_mutex_);
  const uint64_t loaded = libraries_loaded();
  if (std::exchange(looked_at_, loaded) == loaded) return;
  const LoadedLibrary library = LoadedLibrary::already_mapped("libnccl.so.2");
  auto* const get = library ? library.function<int(int*)>("ncclGetVersion") : nullptr;
  int version = 0;
  if (get != nullptr && get(&version) == 0) version_ = version;
}

void NcclSource::describe(JsonObject& meta, const SourceOptions& options) const {
  if (!options.nccl) return;
  JsonObject json;
  const std::lock_guard lock(mutex_);
  json.put("interface", interface_).put("version", version_.load());
  calls_.describe(json, options.phase);
  meta.raw("nccl", json.text());
}

// A child cannot use its parent's communicators. Their memory stays, since NCCL has its address.
void NcclSource::after_fork_in_child() {
  new (&mutex_) std::mutex;
  new (&look_mutex_) std::mutex;
  is_wanted_.store(false);
  calls_.forget_phases();
}

NcclCommunicator* NcclSource::add_communicator(int interface, NcclCommunicator communicator) {
  const std::lock_guard lock(mutex_);
  interface_ = std::max(interface_, interface);
  return calls_.add_communicator(std::move(communicator));
}

uint64_t NcclSource::begin(NcclCommunicator& communicator, const NcclOperation& operation,
                           std::string_view torch_group) {
  const std::lock_guard lock(mutex_);
  if (communicator.torch_group.empty()) communicator.torch_group = torch_group;
  return calls_.begin(communicator, operation, recording_state.active.load(std::memory_order_relaxed) & kSlots);
}

void NcclSource::begin_channel(uint64_t number, uint64_t gpu_ns) {
  const std::lock_guard lock(mutex_);
  calls_.begin_channel(number, gpu_ns);
}

void NcclSource::end_channel(uint64_t number, uint64_t gpu_ns) {
  const std::lock_guard lock(mutex_);
  calls_.end_channel(number, gpu_ns);
}

NcclSource& nccl_source() {
  static NcclSource& source = *new NcclSource;  // NCCL's threads may outlive static destruction
  return source;
}

}  // namespace bragg
