#include "context/recording_state.h"

namespace bragg {

[[gnu::section("bragg_hot")]] constinit RecordingState recording_state;

}  // namespace bragg
