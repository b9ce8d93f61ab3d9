#include "driver/value_kernel.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

namespace bragg::fake {
namespace {

using value_kernel::Dtype;
using value_kernel::Entry;
using value_kernel::Log;
using value_kernel::Parameters;
using value_kernel::Total;

// The variables of the loaded modules, by their log. One kernel runs at a time.
std::mutex mutex;
std::map<uint64_t, uint64_t>& reserved_by_log() {
  static auto& self = *new std::map<uint64_t, uint64_t>;
  return self;
}

template <class T>
T element(uint64_t address) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

double half(uint16_t bits) noexcept {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

double floating(Dtype dtype, uint64_t address) noexcept {
  if (dtype == Dtype::F16) return half(element<uint16_t>(address));
  if (dtype == Dtype::BF16) return std::bit_cast<float>(uint32_t{element<uint16_t>(address)} << 16);
  return dtype == Dtype::F32 ? element<float>(address) : element<double>(address);
}

int64_t integer(Dtype dtype, uint64_t address) noexcept {
  if (dtype == Dtype::I8) return element<int8_t>(address);
  if (dtype == Dtype::I16) return element<int16_t>(address);
  if (dtype == Dtype::I32) return element<int32_t>(address);
  if (dtype == Dtype::I64) return element<int64_t>(address);
  const uint8_t byte = element<uint8_t>(address);
  return dtype == Dtype::Bool ? byte != 0 : byte;
}

uint64_t bits_at(const Parameters& reading, uint64_t index) noexcept {
  const auto dtype = static_cast<Dtype>(reading.dtype);
  const uint64_t address = reading.source + index * static_cast<uint64_t>(reading.stride_bytes);
  if (dtype <= Dtype::F64) return std::bit_cast<uint64_t>(floating(dtype, address));
  const int64_t value = integer(dtype, address);
  return reading.is_float != 0 ? std::bit_cast<uint64_t>(static_cast<double>(value)) : static_cast<uint64_t>(value);
}

void store(uint64_t& shared, uint64_t value) noexcept {
  std::atomic_ref(shared).store(value, std::memory_order_release);
}

void add_to_total(Total& total, uint64_t bits, bool is_float) noexcept {
  store(total.version, total.version + 1);
  store(total.count, total.count + 1);
  store(total.sum, is_float ? std::bit_cast<uint64_t>(std::bit_cast<double>(total.sum) + std::bit_cast<double>(bits))
                            : total.sum + bits);
  store(total.last, bits);
  store(total.version, total.version + 1);
}

void append(Entry& entry, uint64_t place, uint32_t slot, uint64_t bits) noexcept {
  store(entry.bits, bits);
  store(entry.tag, (place + 1) << 32 | slot);
}

}  // namespace

bool is_value_kernel(const Operation& operation) noexcept {
  return operation.name != nullptr && std::strcmp(operation.name, value_kernel::kName) == 0;
}

Parameters reading_of(void** arguments) noexcept {
  Parameters reading{};
  const auto copy = [&](auto& field, size_t index) { std::memcpy(&field, arguments[index], sizeof field); };
  copy(reading.source, 0);
  copy(reading.log, 1);
  copy(reading.totals, 2);
  copy(reading.stride_bytes, 3);
  copy(reading.slot, 4);
  copy(reading.length, 5);
  copy(reading.dtype, 6);
  copy(reading.is_float, 7);
  return reading;
}

void read_values(const Parameters& reading) noexcept {
  const std::lock_guard lock(mutex);
  Log& log = *reinterpret_cast<Log*>(reading.log);
  Total* totals = reinterpret_cast<Total*>(reading.totals);
  uint64_t& reserved = reserved_by_log()[reading.log];
  const uint64_t read = std::atomic_ref(log.read).load(std::memory_order_acquire);
  if (reserved + reading.length - read > Log::kCapacity) {
    for (uint32_t i = 0; i < reading.length; ++i) add_to_total(totals[i], bits_at(reading, i), reading.is_float != 0);
    store(log.overflowed, log.overflowed + reading.length);
    return;
  }
  for (uint32_t i = 0; i < reading.length; ++i, ++reserved)
    append(log.entries[reserved % Log::kCapacity], reserved, reading.slot + i, bits_at(reading, i));
}

}  // namespace bragg::fake
