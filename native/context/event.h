// What a thread writes down: 32 bytes, with a named payload for each kind.
#pragma once

#include <cstdint>
#include <type_traits>

#include "context/calling_context_tree.h"
#include "context/metric_names.h"
#include "context/recording_state.h"

namespace bragg {

// An event belongs to two nodes: one for sessions without and one for sessions with Python call paths.
struct ContextNodes {
  NodeId shadow = kRootNode;
  NodeId python = kRootNode;
  friend bool operator==(const ContextNodes&, const ContextNodes&) = default;
};

enum class EventKind : uint8_t {
  Launch,     // a call that will have device records with this correlation id
  Captured,   // it has none: it became a node of a graph
  Failed,     // it has none: it was refused
  LaunchEnd,  // its return
  OwnLaunch,  // a Launch of a kernel of ours
  Scope,      // a scope or operator that ended
  ApiCall,    // a call of a GPU's API that ended
  Sample,     // of what the host does
  Mark,       // a moment on this thread
  Range,      // of the process: it may have started on another thread, and overlaps what it likes
  Value,      // of a metric of the program
  Input,      // an input of an operator, which another operator made
};

// Whether a call of a GPU's API returns when the GPU has done what it was given. Copies: asynchronous ones, which do if
// the host's memory is pageable.
enum class Waiting : uint8_t { No, Yes, Copies };

struct Interval {
  int64_t start_ns;
  int64_t end_ns;
};

// What a Launch puts on a device, as far as it is known.
struct LaunchedWork {
  StringId kernel;       // None: it goes by its symbol
  GraphVersionId graph;  // None: of no graph, or one that is not known
  CodeNumber code;       // of the kernel; None: not known
};

// Element `index` of `length`; 0 of 0 is a scalar.
struct RecordedValue {
  uint64_t bits;
  uint32_t index;
  uint32_t length;
};

struct InputOrigin {
  NodeId shadow;  // of the operator that made it
  NodeId python;
  uint32_t output;  // which of its tensors
};

struct Event {
  EventKind kind;
  union {
    bool has_more_records;  // Launch: several device records may follow
    bool is_own;            // Captured, Failed: an OwnLaunch
    uint8_t call;           // LaunchEnd: number of the call in CallNames
    Waiting waiting;        // ApiCall
    bool is_smaller_part;   // Sample: the smaller one of two events for one sample; it is not counted
  };
  uint16_t mask;  // sessions that were active
  union {
    CorrelationId correlation;  // of a launch; ApiCall: of the one in it, or None
    MetricId metric;            // Value
    uint32_t input;             // Input: its number
    uint32_t sampled_thread;    // Sample: of another thread than the one that writes this down; 0: of that one
  };
  NodeId shadow;
  NodeId python;
  union {
    Interval interval;  // LaunchEnd, Scope, ApiCall, Mark, Range; Sample: the time that it stands for
    LaunchedWork work;  // Launch, OwnLaunch
    RecordedValue value;
    InputOrigin origin;  // Input
  };

  // Its payload is the caller's: clearing what is overwritten at once would cost each scope 3 %.
  [[nodiscard]] static constexpr Event of(EventKind kind, SessionMask mask, ContextNodes nodes = {}) noexcept {
    Event event;
    event.kind = kind;
    event.has_more_records = false;
    event.mask = static_cast<uint16_t>(mask);
    event.correlation = CorrelationId::None;
    event.shadow = nodes.shadow;
    event.python = nodes.python;
    return event;
  }
  [[nodiscard]] static constexpr Event spanning(EventKind kind, SessionMask mask, ContextNodes nodes,
                                                Interval interval) noexcept {
    Event event = of(kind, mask, nodes);
    event.interval = interval;
    return event;
  }
  [[nodiscard]] constexpr ContextNodes nodes() const noexcept { return {shadow, python}; }
};
static_assert(sizeof(Event) == 32);
static_assert(std::is_trivially_default_constructible_v<Event>);  // a ring that nobody writes to takes no memory
static_assert(kMaxSessions <= 16);

}  // namespace bragg
