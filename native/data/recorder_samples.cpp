// Instruction samples become values of the nodes whose kernels ran.
#include "data/recorder.h"

#include <algorithm>

namespace bragg {

void Recorder::note_sampled_kernel(const Session& session, const DeviceEvent& event, uint64_t cubin_crc, NodeId node) {
  const bool is_serialized = session.options().of_sources.sampling.mode == SamplingMode::Serialized;
  samples_of_line_[session.line()].add({
      .target = {session.slot(), node},
      .function = FrameTable::instance().intern_string(event.name != nullptr ? event.name : ""),
      .cubin_crc = cubin_crc,
      .correlation = is_serialized ? event.correlation : 0,
      .weight = taken_->sample_weight(event),
  });
}

void Recorder::take(const PcSample& sample) {
  for (auto& [line, attribution] : samples_of_line_) attribution.add(sample);
}

bool Recorder::is_last_sampled(const Session& session) {
  const std::lock_guard work(work_mutex_);
  return samples_of_line_.size() == 1 && samples_of_line_.contains(session.line());
}

void Recorder::settle_samples() {
  for (auto& [line, attribution] : samples_of_line_)
    attribution.settle([this, line = line](auto&&... what) { give_samples(line, what...); });
}

void Recorder::end_samples(Session& session) {
  const auto found = samples_of_line_.find(session.line());
  if (found == samples_of_line_.end()) return;
  SampleAttribution& attribution = found->second;
  const bool is_last = !session.is_retired();
  if (is_last) attribution.give_up([&](auto&&... what) { give_samples(session.line(), what...); });
  attribution.forget(session.slot());
  if (is_last) samples_of_line_.erase(found);
}

void Recorder::give_samples(uint32_t line, const SampleTarget* target, const Code& code, const PcSample& sample,
                            uint64_t count, bool is_exact) {
  Session* session = target != nullptr ? sessions_[target->slot].get() : newest_on(line);
  if (session == nullptr) return;
  if (target != nullptr) return session->add_samples(target->node, code, sample, count, is_exact);
  auto& frames = FrameTable::instance();
  auto& tree = CallingContextTree::instance();
  const NodeId nobodys = tree.child(kRootNode, frames.intern(FrameKind::State, "<samples without a launch>"));
  const FrameId kernel = frames.intern(FrameKind::Kernel, frames.string(code.function));
  session->add_samples(tree.child(nobodys, kernel), code, sample, count, false);
}

}  // namespace bragg
