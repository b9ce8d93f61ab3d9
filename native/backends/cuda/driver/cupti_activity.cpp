#include "backends/cuda/driver/cupti_activity.h"

namespace bragg {

cupti::Result CuptiActivity::register_buffers(const BufferCallbacks& callbacks) const {
  return is_shared_ ? cupti_->shared.register_callbacks(subscriber_, callbacks.requested_v2, callbacks.completed_v2)
                    : cupti_->register_callbacks(callbacks.requested, callbacks.completed);
}

cupti::Result CuptiActivity::enable(cupti::Kind kind) const {
  return is_shared_ ? cupti_->shared.enable(subscriber_, kind, nullptr) : cupti_->enable(kind);
}

cupti::Result CuptiActivity::disable(cupti::Kind kind) const {
  return is_shared_ ? cupti_->shared.disable(subscriber_, kind, nullptr) : cupti_->disable(kind);
}

cupti::Result CuptiActivity::set(cupti::Attribute attribute, uint8_t value) const {
  size_t size = sizeof value;
  if (is_shared_) return cupti_->shared.set_attribute(subscriber_, attribute, &size, &value);
  if (cupti_->set_attribute == nullptr) return cupti::Result::NotSupported;
  return cupti_->set_attribute(attribute, &size, &value);
}

std::optional<uint8_t> CuptiActivity::get(cupti::Attribute attribute) const {
  uint8_t value = 0;
  size_t size = sizeof value;
  auto result = cupti::Result::NotSupported;
  if (is_shared_)
    result = cupti_->shared.get_attribute(subscriber_, attribute, &size, &value);
  else if (cupti_ != nullptr && cupti_->get_attribute != nullptr)
    result = cupti_->get_attribute(attribute, &size, &value);
  return result == cupti::Result::Success ? std::optional(value) : std::nullopt;
}

uint64_t CuptiActivity::take_dropped(cuda::Context context, uint32_t stream) const {
  size_t dropped = 0;
  const auto result = is_shared_ ? cupti_->shared.dropped_records(subscriber_, context, stream, &dropped)
                                 : cupti_->dropped_records(context, stream, &dropped);
  return result == cupti::Result::Success ? dropped : 0;
}

NextRecord CuptiActivity::next_record() const {
  if (!is_shared_) return cupti_->next_record;
  return
      [next = cupti_->shared.next_record, subscriber = subscriber_](
          uint8_t* buffer, size_t valid_bytes, void** record) { return next(subscriber, buffer, valid_bytes, record); };
}

}  // namespace bragg
