#include "backends/cuda/driver/cuda_driver.h"

namespace bragg {

std::string CudaDriver::initialize() {
  const LoadedLibrary library = LoadedLibrary::open("libcuda.so.1");
  auto* init = library ? library.function<cuda::CuInit>("cuInit") : nullptr;
  if (init == nullptr) return "libcuda.so.1 was not found: no NVIDIA driver here";
  const auto result = init(0);
  if (result == cuda::Result::Success) return "";
  return "cuInit failed with CUDA error " + std::to_string(static_cast<uint32_t>(result));
}

CudaDriver CudaDriver::mapped() {
  CudaDriver driver;
  driver.library_ = LoadedLibrary::already_mapped("libcuda.so.1");
  return driver;
}

// cuDeviceGetCount is the cheapest call that says NotInitialized instead of initialising.
bool CudaDriver::is_initialized() const {
  if (!library_) return false;
  auto* get_count = library_.function<cuda::CuDeviceGetCount>("cuDeviceGetCount");
  int32_t count = 0;
  return get_count != nullptr && get_count(&count) == cuda::Result::Success;
}

int32_t CudaDriver::version() const {
  int32_t version = 0;
  if (auto* get_version = library_.function<cuda::CuDriverGetVersion>("cuDriverGetVersion")) get_version(&version);
  return version;
}

uint32_t CudaDriver::n_primary_contexts() const {
  if (!library_) return 0;
  auto* get_count = library_.function<cuda::CuDeviceGetCount>("cuDeviceGetCount");
  auto* get_state = library_.function<cuda::CuDevicePrimaryCtxGetState>("cuDevicePrimaryCtxGetState");
  int32_t count = 0;
  if (get_count == nullptr || get_state == nullptr || get_count(&count) != cuda::Result::Success) return 0;
  uint32_t active_contexts = 0;
  for (cuda::Device device = 0; device < count; ++device) {
    uint32_t flags = 0;
    int32_t active = 0;
    if (get_state(device, &flags, &active) == cuda::Result::Success && active != 0) ++active_contexts;
  }
  return active_contexts;
}

std::vector<CudaDevice> CudaDriver::devices() const {
  auto* get_count = library_.function<cuda::CuDeviceGetCount>("cuDeviceGetCount");
  auto* get = library_.function<cuda::CuDeviceGet>("cuDeviceGet");
  auto* get_name = library_.function<cuda::CuDeviceGetName>("cuDeviceGetName");
  auto* get_attribute = library_.function<cuda::CuDeviceGetAttribute>("cuDeviceGetAttribute");
  std::vector<CudaDevice> devices;
  int32_t count = 0;
  if (get_count == nullptr || get == nullptr || get_name == nullptr || get_attribute == nullptr) return devices;
  if (get_count(&count) != cuda::Result::Success) return devices;
  for (int32_t ordinal = 0; ordinal < count; ++ordinal) {
    cuda::Device device{};
    char name[128] = "";
    if (get(&device, ordinal) != cuda::Result::Success) continue;
    get_name(name, sizeof name, device);
    CudaDevice& facts = devices.emplace_back();
    facts.name = name;
    get_attribute(&facts.compute_capability_major, cuda::DeviceAttribute::ComputeCapabilityMajor, device);
    get_attribute(&facts.compute_capability_minor, cuda::DeviceAttribute::ComputeCapabilityMinor, device);
    get_attribute(&facts.multiprocessors, cuda::DeviceAttribute::MultiprocessorCount, device);
    get_attribute(&facts.clock_khz, cuda::DeviceAttribute::ClockKhz, device);
    get_attribute(&facts.memory_clock_khz, cuda::DeviceAttribute::MemoryClockKhz, device);
    get_attribute(&facts.memory_bus_bits, cuda::DeviceAttribute::MemoryBusWidthBits, device);
  }
  return devices;
}

std::string CudaDriver::uuid(uint32_t ordinal) const {
  auto* get = library_.function<cuda::CuDeviceGet>("cuDeviceGet");
  auto* get_uuid = library_.function<cuda::CuDeviceGetUuid>("cuDeviceGetUuid_v2");
  cuda::Device device{};
  cuda::Uuid uuid{};
  if (get == nullptr || get_uuid == nullptr || get(&device, static_cast<int32_t>(ordinal)) != cuda::Result::Success ||
      get_uuid(&uuid, device) != cuda::Result::Success)
    return "";
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : uuid.bytes) text.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return text;
}

uint32_t CudaDriver::current_device() const {
  cuda::Device device{};
  auto* get = library_.function<cuda::CuCtxGetDevice>("cuCtxGetDevice");
  return get != nullptr && get(&device) == cuda::Result::Success ? static_cast<uint32_t>(device) : UINT32_MAX;
}

}  // namespace bragg
