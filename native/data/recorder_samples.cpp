// Instruction samples become values of the nodes whose kernels ran.
#include "data/recorder.h"

#include <algorithm>

namespace bragg {

void Recorder::note_sampled_kernel(const Phase& phase, const DeviceEvent& event, uint64_t cubin_crc, NodeId node) {
  const bool is_serialized = phase.options().of_sources.sampling.mode == SamplingMode::Serialized;
  samples_of_session_[phase.session()].add({
      .target = {phase.slot(), node},
      .function = FrameTable::instance().intern_string(event.name != nullptr ? event.name : ""),
      .cubin_crc = cubin_crc,
      .correlation = is_serialized ? event.correlation : CorrelationId::None,
      .weight = taken_->sample_weight(event),
  });
}

void Recorder::take(const PcSample& sample) {
  for (auto& [session, attribution] : samples_of_session_) attribution.add(sample);
}

void Recorder::take(const InstructionCount& count) {
  const PcSample& each = count.instruction;
  for_phases(count.mask & kSlots, [&](Phase& phase) {
    phase.add_samples(phase.node_of(count.kernel), {each.cubin_crc, each.function}, each, each.count, true);
  });
}

void Recorder::settle_samples() {
  for (auto& [session, attribution] : samples_of_session_)
    attribution.settle([this, session = session](auto&&... what) { give_samples(session, what...); });
}

void Recorder::end_samples(Phase& phase) {
  const auto found = samples_of_session_.find(phase.session());
  if (found == samples_of_session_.end()) return;
  SampleAttribution& attribution = found->second;
  const bool is_last = !phase.is_retired();
  if (is_last) attribution.give_up([&](auto&&... what) { give_samples(phase.session(), what...); });
  attribution.forget(phase.slot());
  if (is_last) samples_of_session_.erase(found);
}

void Recorder::give_samples(uint32_t session, const SampleTarget* target, const Code& code, const PcSample& sample,
                            uint64_t count, bool is_exact) {
  Phase* phase = target != nullptr ? phases_[target->slot].get() : newest_on(session);
  if (phase == nullptr) return;
  if (target != nullptr) return phase->add_samples(target->node, code, sample, count, is_exact);
  auto& frames = FrameTable::instance();
  auto& tree = CallingContextTree::instance();
  const NodeId nobodys = tree.child(kRootNode, frames.intern(FrameKind::State, "<samples without a launch>"));
  const FrameId kernel = frames.intern(FrameKind::Kernel, frames.string(code.function));
  phase->add_samples(tree.child(nobodys, kernel), code, sample, count, false);
}

}  // namespace bragg
