// What CUPTI calls: at calls of the driver and the runtime, about resources, and for activity buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver/cupti_abi.h"

namespace bragg::cuda_backend {

// Threads: the program's, inside calls of the driver.
void on_callback(void*, cupti::Domain domain, uint32_t cbid, const void* argument);
// Threads: any, CUPTI's own too.
void on_buffer_requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records);
void on_buffer_completed(cuda::Context context, uint32_t stream, uint8_t* buffer, size_t size_bytes,
                         size_t valid_bytes);
void on_buffer_requested_v2(uint8_t** buffer, size_t* size_bytes, size_t* max_records, cupti::BufferRequestInfo*);
void on_buffer_completed_v2(uint8_t* buffer, size_t size_bytes, size_t valid_bytes, cupti::BufferCompleteInfo*);

}  // namespace bragg::cuda_backend
