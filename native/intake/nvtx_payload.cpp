#include "intake/nvtx_payload.h"

#include <bit>
#include <optional>

#include "context/found_once.h"

namespace bragg::nvtx {
namespace {

// A number of another type is none: behind a schema it is a pointer.
std::optional<double> number_in(const EventAttributes& attributes) noexcept {
  const uint64_t bits = attributes.payload;
  const auto low_bits = static_cast<uint32_t>(bits);
  switch (attributes.payload_type) {
    case PayloadType::UnsignedInt64:
      return static_cast<double>(bits);
    case PayloadType::Int64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case PayloadType::Double:
      return std::bit_cast<double>(bits);
    case PayloadType::UnsignedInt32:
      return static_cast<double>(low_bits);
    case PayloadType::Int32:
      return static_cast<double>(static_cast<int32_t>(low_bits));
    case PayloadType::Float:
      return static_cast<double>(std::bit_cast<float>(low_bits));
    default:
      return {};
  }
}

constinit FoundOnce<MetricId> last_number, sum_of_numbers;

MetricId metric(const char* name, MetricKind kind) { return MetricNames::instance().intern(name, "", kind, true); }

}  // namespace

// A program numbers its steps or counts its bytes: of steps the last number matters, of bytes the sum.
void record_payload(ContextNodes nodes, const EventAttributes& attributes) noexcept {
  const std::optional<double> number = number_in(attributes);
  if (!number || !recording()) return;
  const MetricId last = last_number.get([] { return metric("nvtx_payload", MetricKind::Property); });
  const MetricId sum = sum_of_numbers.get([] { return metric("nvtx_payload_sum", MetricKind::Exclusive); });
  ThreadContext& thread = ThreadContext::current();
  for (const MetricId each : {last, sum})
    if (each != MetricId::None) thread.record_value_now(nodes, each, std::bit_cast<uint64_t>(*number));
}

}  // namespace bragg::nvtx
