#include "backends/nccl/nccl_calls.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace bragg {

std::string_view nccl_type_name(std::string_view dtype) noexcept {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"ncclFloat32", "f32"},       {"ncclBfloat16", "bf16"},     {"ncclFloat16", "f16"}, {"ncclInt8", "i8"},
      {"ncclUint8", "u8"},          {"ncclInt32", "i32"},         {"ncclInt64", "i64"},   {"ncclFloat64", "f64"},
      {"ncclFloat8e4m3", "f8e4m3"}, {"ncclFloat8e5m2", "f8e5m2"}, {"ncclUint32", "u32"},  {"ncclUint64", "u64"},
  };
  const auto* found = std::ranges::find(kNames, dtype, &std::pair<std::string_view, std::string_view>::first);
  return found != std::end(kNames) ? found->second : "elements";
}

NcclCommunicator* NcclCalls::add_communicator(NcclCommunicator communicator) {
  if (communicators_.size() >= kMaxCommunicators) return nullptr;
  communicator.number = static_cast<uint32_t>(communicators_.size());
  char id[16];
  const auto end = std::to_chars(std::begin(id), std::end(id), communicator.id, 16).ptr;
  communicator.group = communicator.name.empty() ? "" : communicator.name + ' ';
  communicator.group.append(id, end);
  return &communicators_.emplace_back(std::move(communicator));
}

void NcclCalls::begin_phase(uint32_t phase) {
  phases_[phase] = {.is_open = true, .generation = phases_[phase].generation + 1, .sums = {}};
}
void NcclCalls::end_phase(uint32_t phase) { phases_[phase].is_open = false; }
bool NcclCalls::is_wanted() const { return std::ranges::any_of(phases_, &Phase::is_open); }

uint64_t NcclCalls::begin(const NcclCommunicator& communicator, const NcclOperation& operation, SessionMask active) {
  const Key key{communicator.number,
                {name(operation.function), name(operation.dtype), name(operation.algorithm), name(operation.protocol)},
                operation.count,
                operation.peer,
                operation.channels};
  const auto [known, is_new] = numbers_.try_emplace(key, static_cast<uint32_t>(calls_.size()));
  if (is_new && calls_.size() >= kMaxCalls) {
    numbers_.erase(known);
    ++lost_;
    return 0;
  }
  if (is_new) calls_.push_back(key);
  if (open_.empty()) open_.resize(kMaxOpen);
  const uint64_t number = ++last_number_;
  Open& begun = open_[number % kMaxOpen] = {.number = number, .call = known->second, .channels = operation.channels};
  for (uint32_t phase = 0; phase < kMaxSessions; ++phase) {
    if (!phases_[phase].is_open || (active >> phase & 1) == 0) continue;
    begun.phases |= 1u << phase;
    begun.generations[phase] = phases_[phase].generation;
    std::vector<Sums>& sums = phases_[phase].sums;
    if (sums.size() < calls_.size()) sums.resize(calls_.size());
    Sums& own = sums[known->second];
    ++own.calls;
    own.last_sequence = operation.sequence;
  }
  return operation.channels != 0 ? number : 0;
}

void NcclCalls::begin_channel(uint64_t number, uint64_t gpu_ns) {
  Open* const begun = open(number);
  if (begun == nullptr) return;
  begun->begin_ns = begun->begin_ns == 0 ? gpu_ns : std::min(begun->begin_ns, gpu_ns);
}

void NcclCalls::end_channel(uint64_t number, uint64_t gpu_ns) {
  Open* const ended = open(number);
  if (ended == nullptr) return;
  ended->end_ns = std::max(ended->end_ns, gpu_ns);
  if (++ended->ended == ended->channels) settle(*ended);
}

void NcclCalls::describe(JsonObject& json, uint32_t phase) const {
  const std::vector<Sums>& sums = phases_[phase].sums;
  std::map<uint32_t, std::vector<std::string>> calls;  // by communicator
  for (size_t call = 0; call < sums.size(); ++call)
    if (sums[call].calls != 0) calls[calls_[call].communicator].push_back(call_json(calls_[call], sums[call]));
  json.raw("communicators", json_array(calls, [&](const auto& of_one) {
             const NcclCommunicator& communicator = communicators_[of_one.first];
             return JsonObject()
                 .put("group", communicator.group)
                 .put("torch_group", communicator.torch_group)
                 .put("rank", communicator.rank)
                 .put("n_ranks", communicator.n_ranks)
                 .put("n_nodes", communicator.n_nodes)
                 .raw("calls", json_array(of_one.second, [](const std::string& text) { return text; }))
                 .text();
           }));
  json.put("lost_calls", lost_);
}

void NcclCalls::forget_phases() {
  phases_ = {};
  open_.clear();
  lost_ = 0;
}

// NCCL's texts are constants of it: some tens.
uint32_t NcclCalls::name(std::string_view text) {
  const auto known = std::ranges::find(names_, text);
  if (known != names_.end()) return static_cast<uint32_t>(known - names_.begin());
  if (names_.size() >= kMaxNames) return 0;
  names_.emplace_back(text);
  return static_cast<uint32_t>(names_.size() - 1);
}

NcclCalls::Open* NcclCalls::open(uint64_t number) {
  if (open_.empty()) return nullptr;
  Open& found = open_[number % kMaxOpen];
  return found.number == number ? &found : nullptr;
}

// A phase that has ended still gets the times of what began in it.
void NcclCalls::settle(Open& ended) {
  ended.number = 0;
  if (ended.begin_ns == 0 || ended.end_ns < ended.begin_ns) return;
  const uint64_t took_ns = ended.end_ns - ended.begin_ns;
  for (uint32_t phase = 0; phase < kMaxSessions; ++phase) {
    if ((ended.phases >> phase & 1) == 0 || ended.generations[phase] != phases_[phase].generation) continue;
    Sums& sums = phases_[phase].sums[ended.call];
    sums.least_ns = sums.timed == 0 ? took_ns : std::min(sums.least_ns, took_ns);
    sums.most_ns = std::max(sums.most_ns, took_ns);
    sums.total_ns += took_ns;
    ++sums.timed;
  }
}

std::string NcclCalls::call_json(const Key& key, const Sums& sums) const {
  JsonObject json;
  json.put("function", names_[key.names[0]])
      .put("dtype", names_[key.names[1]])
      .put("algorithm", names_[key.names[2]])
      .put("protocol", names_[key.names[3]])
      .put("count", key.count)
      .put("channels", key.channels)
      .put("calls", sums.calls)
      .put("timed", sums.timed);
  if (key.peer != NcclOperation::kNoPeer) json.put("peer", key.peer);
  if (sums.last_sequence != NcclOperation::kNoSequence) json.put("last_sequence", sums.last_sequence);
  if (sums.timed != 0) json.put("gpu_ns", sums.total_ns).put("least_ns", sums.least_ns).put("most_ns", sums.most_ns);
  return json.text();
}

}  // namespace bragg
