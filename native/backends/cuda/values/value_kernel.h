// The kernel that reads metric values on the GPU, and the pinned memory that it shares with the consumer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/device_values.h"

namespace bragg::value_kernel {

using bragg::Dtype;  // the kernel compares with its numbers

// One value that the kernel has read.
struct Entry {
  uint64_t tag;   // low 32 bits of 1 + its place in the log << 32 | slot; written last
  uint64_t bits;  // of a double or an int64, as the metric's type is
};

// What could not be logged because the consumer was behind: the sum is exact, only the order is lost.
struct Total {
  uint64_t version;  // odd while it changes
  uint64_t count;
  uint64_t sum;   // bits, as above
  uint64_t last;  // bits
};

// A ring of one CUDA context, written by the kernel in the order of `reserved` and read by the consumer. What is
// written by both sides is naturally aligned and 8 bytes large: such accesses are atomic across PCIe.
// Read-modify-writes are not, so there are none.
struct Log {
  static constexpr uint64_t kCapacity = 1u << 16;  // 20 ms, an idle consumer's nap, at 3 values a microsecond
  uint64_t read;                                   // entries that may be written again; written by the consumer
  uint64_t overflowed;                             // values in totals; written by the kernel
  uint64_t padding[6];
  Entry entries[kCapacity];
};
static_assert(offsetof(Log, overflowed) == 8 && offsetof(Log, entries) == 64 && sizeof(Entry) == 16);
static_assert(sizeof(Total) == 32);

inline constexpr const char* kName = "bragg_read_values";
inline constexpr uint32_t kMaxThreads = 256;

// Parameters of the kernel, in this order. Addresses are the device's.
struct Parameters {
  uint64_t source;
  uint64_t log;
  uint64_t totals;  // of the first element's slot; the others follow
  int64_t stride_bytes;
  uint32_t slot;  // of the first element; the others follow
  uint32_t length;
  uint32_t dtype;
  uint32_t is_float;  // the metric's type; 0 is for integer dtypes only
};

// Launched with one block of at most kMaxThreads threads.
inline constexpr const char* kPtx = R"(
.version 6.4
.target sm_70
.address_size 64

.global .align 8 .u64 reserved;
.global .align 8 .u64 known_read;
.global .align 4 .u32 totals_lock;

.visible .entry bragg_read_values(
  .param .u64 p_source, .param .u64 p_log, .param .u64 p_totals, .param .u64 p_stride_bytes,
  .param .u32 p_slot, .param .u32 p_length, .param .u32 p_dtype, .param .u32 p_is_float)
{
  .reg .pred %p, %log_is_full, %is_float;
  .reg .b16 %h;
  .reg .b32 %thread, %threads, %slot, %length, %dtype, %r, %i;
  .reg .b64 %source, %log, %totals, %stride, %first, %end, %read, %old, %address, %tag, %bits, %n, %version;
  .reg .f32 %f;
  .reg .f64 %d, %sum;
  .shared .align 8 .u64 s_first;
  .shared .align 4 .u32 s_log_is_full;

  ld.param.u64 %source, [p_source];
  ld.param.u64 %log, [p_log];
  ld.param.u64 %totals, [p_totals];
  ld.param.u64 %stride, [p_stride_bytes];
  ld.param.u32 %slot, [p_slot];
  ld.param.u32 %length, [p_length];
  ld.param.u32 %dtype, [p_dtype];
  ld.param.u32 %r, [p_is_float];
  setp.ne.u32 %is_float, %r, 0;
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;

  // The first thread reserves a place in the log for all elements, or takes the lock of the totals.
  setp.ne.u32 %p, %thread, 0;
  @%p bra RESERVED;
  ld.relaxed.gpu.global.u64 %first, [reserved];
TRY:
  cvt.u64.u32 %end, %length;
  add.u64 %end, %end, %first;
  ld.acquire.gpu.global.u64 %read, [known_read];
  sub.s64 %n, %end, %read;
  setp.le.s64 %p, %n, 65536;
  @%p bra ROOM;
  ld.acquire.sys.global.u64 %read, [%log];
  st.release.gpu.global.u64 [known_read], %read;
  sub.s64 %n, %end, %read;
  setp.gt.s64 %p, %n, 65536;
  @%p bra FULL;
ROOM:
  atom.acq_rel.gpu.global.cas.b64 %old, [reserved], %first, %end;
  setp.eq.u64 %p, %old, %first;
  mov.b32 %r, 0;
  @%p bra SHARE;
  mov.b64 %first, %old;
  bra TRY;
FULL:
  atom.acquire.gpu.global.cas.b32 %r, [totals_lock], 0, 1;
  setp.eq.u32 %p, %r, 0;
  mov.b32 %r, 1;
  @%p bra SHARE;
  nanosleep.u32 100;
  bra FULL;
SHARE:
  st.shared.u64 [s_first], %first;
  st.shared.u32 [s_log_is_full], %r;
RESERVED:
  bar.sync 0;
  ld.shared.u64 %first, [s_first];
  ld.shared.u32 %r, [s_log_is_full];
  setp.ne.u32 %log_is_full, %r, 0;

  mov.b32 %i, %thread;
NEXT:
  setp.ge.u32 %p, %i, %length;
  @%p bra DONE;
  cvt.u64.u32 %address, %i;
  mad.lo.s64 %address, %address, %stride, %source;
  setp.eq.u32 %p, %dtype, 0;
  @%p bra F16;
  setp.eq.u32 %p, %dtype, 1;
  @%p bra BF16;
  setp.eq.u32 %p, %dtype, 2;
  @%p bra F32;
  setp.eq.u32 %p, %dtype, 3;
  @%p bra F64;
  setp.eq.u32 %p, %dtype, 4;
  @%p bra I8;
  setp.eq.u32 %p, %dtype, 5;
  @%p bra I16;
  setp.eq.u32 %p, %dtype, 6;
  @%p bra I32;
  setp.eq.u32 %p, %dtype, 7;
  @%p bra I64;
  ld.global.u8 %n, [%address];
  setp.eq.u32 %p, %dtype, 8;
  @%p bra INTEGER;
  min.u64 %n, %n, 1;
  bra INTEGER;
I8:
  ld.global.s8 %n, [%address];
  bra INTEGER;
I16:
  ld.global.s16 %n, [%address];
  bra INTEGER;
I32:
  ld.global.s32 %n, [%address];
  bra INTEGER;
I64:
  ld.global.s64 %n, [%address];
INTEGER:
  mov.b64 %bits, %n;
  @!%is_float bra READ;
  cvt.rn.f64.s64 %d, %n;
  bra FLOAT;
F16:
  ld.global.b16 %h, [%address];
  cvt.f64.f16 %d, %h;
  bra FLOAT;
BF16:
  ld.global.u16 %r, [%address];
  shl.b32 %r, %r, 16;
  mov.b32 %f, %r;
  cvt.f64.f32 %d, %f;
  bra FLOAT;
F32:
  ld.global.f32 %f, [%address];
  cvt.f64.f32 %d, %f;
  bra FLOAT;
F64:
  ld.global.f64 %d, [%address];
FLOAT:
  mov.b64 %bits, %d;
READ:
  @%log_is_full bra ADD;

  // Log: the bits, then the tag that says they are there.
  cvt.u64.u32 %n, %i;
  add.u64 %n, %n, %first;
  and.b64 %address, %n, 65535;
  shl.b64 %address, %address, 4;
  add.u64 %address, %address, %log;
  add.u64 %tag, %n, 1;
  shl.b64 %tag, %tag, 32;
  add.u32 %r, %slot, %i;
  cvt.u64.u32 %n, %r;
  or.b64 %tag, %tag, %n;
  st.relaxed.sys.global.u64 [%address+72], %bits;
  st.release.sys.global.u64 [%address+64], %tag;
  bra ADVANCE;

  // Total: one block at a time holds the lock.
ADD:
  cvt.u64.u32 %address, %i;
  shl.b64 %address, %address, 5;
  add.u64 %address, %address, %totals;
  ld.relaxed.sys.global.u64 %version, [%address];
  add.u64 %version, %version, 1;
  st.relaxed.sys.global.u64 [%address], %version;
  fence.acq_rel.sys;
  ld.relaxed.sys.global.u64 %n, [%address+8];
  add.u64 %n, %n, 1;
  st.relaxed.sys.global.u64 [%address+8], %n;
  ld.relaxed.sys.global.u64 %n, [%address+16];
  mov.b64 %sum, %n;
  mov.b64 %d, %bits;
  @%is_float add.rn.f64 %sum, %sum, %d;
  @!%is_float add.u64 %n, %n, %bits;
  @%is_float mov.b64 %n, %sum;
  st.relaxed.sys.global.u64 [%address+16], %n;
  st.relaxed.sys.global.u64 [%address+24], %bits;
  add.u64 %version, %version, 1;
  st.release.sys.global.u64 [%address], %version;
ADVANCE:
  add.u32 %i, %i, %threads;
  bra NEXT;
DONE:
  @!%log_is_full bra END;
  bar.sync 0;
  setp.ne.u32 %p, %thread, 0;
  @%p bra END;
  ld.relaxed.sys.global.u64 %n, [%log+8];
  cvt.u64.u32 %end, %length;
  add.u64 %n, %n, %end;
  st.release.sys.global.u64 [%log+8], %n;
  st.release.gpu.global.u32 [totals_lock], 0;
END:
  ret;
}
)";

}  // namespace bragg::value_kernel
