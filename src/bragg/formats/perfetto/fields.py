"""Numbers of fields and constants of Perfetto's public protos.

TracePacket, TrackEvent, TrackDescriptor, InternedData, DebugAnnotation, ClockSnapshot,
GpuRenderStageEvent.
"""

PACKET = 1
# Fields of a packet.
CLOCK_SNAPSHOT, TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED, FLAGS = 6, 8, 10, 11, 12, 13
COMPRESSED = 50
RENDER_STAGE, TIMESTAMP_CLOCK, DEFAULTS, TRACK_DESCRIPTOR, MACHINE = 53, 58, 59, 60, 98
# Fields of a track event.
ANNOTATION, TYPE, NAME, TRACK, DOUBLE_VALUE, FLOW, LAST_FLOW, SAME_WORK = 4, 9, 10, 11, 44, 47, 48, 52
SLICE_BEGIN, SLICE_END, COUNTER = 1, 2, 4
# Fields of a stage of a GPU.
STAGE_EVENT, STAGE_DURATION, STAGE_CONTEXT, STAGE_GPU, STAGE_QUEUE, STAGE = 1, 2, 5, 11, 13, 14
# Fields of a track descriptor.
UUID, TRACK_NAME, PROCESS, THREAD, PARENT, COUNTER_TRACK, ORDER_RANK = 1, 2, 3, 4, 5, 8, 12
# Fields of a process.
PID, SORT_INDEX, PROCESS_NAME, PROCESS_LABEL = 1, 3, 6, 8
# Fields of interned data.
EVENT_NAMES, ANNOTATION_NAMES, CONTEXTS, SPECIFICATIONS, ANNOTATION_STRINGS = 2, 3, 23, 24, 29
# Fields of an annotation.
ANNOTATION_NAME, ANNOTATION_NUMBER, ANNOTATION_STRING = 1, 3, 17
CALL_PATH, GROUP, COLLECTIVE = 1, 2, 3
# The trace's own clock, and one that each sequence defines for itself.
REALTIME, BOOTTIME, SINCE_LAST_PACKET = 1, 6, 64
STATE_CLEARED = 1
