// What NCCL did in each phase: its collectives and messages, counted by communicator, size, algorithm and protocol.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "context/recording_state.h"
#include "data/json.h"

namespace bragg {

struct NcclCommunicator {
  uint64_t id;       // the same on all of its ranks
  std::string name;  // that the program gave it; empty: none
  int32_t rank;
  int32_t n_ranks;
  int32_t n_nodes;
  uint32_t number = 0;
  std::string group = {};        // what it is called in a profile
  std::string torch_group = {};  // the name of PyTorch's process group; empty: not known
};

struct NcclOperation {
  std::string_view function;
  std::string_view dtype;
  std::string_view algorithm;
  std::string_view protocol;
  uint64_t count;     // of elements, as NCCL counts
  int32_t peer;       // or root; kNoPeer: none
  uint32_t channels;  // of which each tells its begin and end; 0: none does
  int64_t sequence;   // kNoSequence: none

  static constexpr int32_t kNoPeer = -1;
  static constexpr int64_t kNoSequence = -1;
};

// f32 for ncclFloat32; "elements": not known.
[[nodiscard]] std::string_view nccl_type_name(std::string_view dtype) noexcept;

// Threads: one at a time. Memory is limited: what is beyond it is counted.
class NcclCalls {
 public:
  // Its address stays valid. nullptr: there are too many.
  [[nodiscard]] NcclCommunicator* add_communicator(NcclCommunicator communicator);

  void begin_phase(uint32_t phase);
  void end_phase(uint32_t phase);
  [[nodiscard]] bool is_wanted() const;  // by a phase that has not ended

  // `active`: the phases that record now. Returns a number by which its channels are told; 0: it is not followed.
  [[nodiscard]] uint64_t begin(const NcclCommunicator& communicator, const NcclOperation& operation,
                               SessionMask active);
  void begin_channel(uint64_t number, uint64_t gpu_ns);
  void end_channel(uint64_t number, uint64_t gpu_ns);

  void describe(JsonObject& json, uint32_t phase) const;
  void forget_phases();

 private:
  // Numbers of texts.
  struct Key {
    uint32_t communicator;
    std::array<uint32_t, 4> names;  // function, type, algorithm, protocol
    uint64_t count;
    int32_t peer;
    uint32_t channels;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Sums {
    uint64_t calls = 0;
    uint64_t timed = 0;
    uint64_t total_ns = 0;
    uint64_t least_ns = 0;
    uint64_t most_ns = 0;
    int64_t last_sequence = NcclOperation::kNoSequence;
  };
  struct Phase {
    bool is_open = false;
    uint32_t generation = 0;
    std::vector<Sums> sums;  // by call
  };
  // An operation whose kernel has not ended. A later one takes its place where the end never comes.
  struct Open {
    uint64_t number = 0;
    uint32_t call = 0;
    SessionMask phases = 0;
    std::array<uint32_t, kMaxSessions> generations{};
    uint32_t channels = 0;
    uint32_t ended = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  static constexpr size_t kMaxCommunicators = 1024, kMaxCalls = 4096, kMaxOpen = 4096, kMaxNames = 256;

  [[nodiscard]] uint32_t name(std::string_view text);
  [[nodiscard]] Open* open(uint64_t number);
  void settle(Open& ended);
  [[nodiscard]] std::string call_json(const Key& key, const Sums& sums) const;

  std::deque<NcclCommunicator> communicators_;
  std::vector<std::string> names_;
  std::map<Key, uint32_t> numbers_;  // of calls
  std::vector<Key> calls_;
  std::array<Phase, kMaxSessions> phases_;
  std::vector<Open> open_;
  uint64_t last_number_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace bragg
