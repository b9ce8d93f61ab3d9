#include "data/capture_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace bragg {
namespace {

constexpr std::array<std::array<uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    tables[0][i] = value;
  }
  for (size_t slice = 1; slice < 8; ++slice)
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[slice - 1][i];
      tables[slice][i] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  return tables;
}

constexpr auto kCrcTables = make_crc_tables();

constexpr off_t kErrorAt = 12;  // in the file header

struct ChunkHeader {
  char magic[4] = {'C', 'H', 'N', 'K'};
  uint16_t type = 0;
  uint16_t zero = 0;
  uint32_t rows = 0;
  uint32_t payload_bytes = 0;
  uint32_t payload_crc = 0;
  uint32_t header_crc = 0;
};
static_assert(sizeof(ChunkHeader) == 24);

}  // namespace

// Polynomial of zlib, eight bytes a step: about 1.5 GB/s.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before) noexcept {
  uint32_t crc = ~before;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint32_t low;
    uint32_t high;
    std::memcpy(&low, &bytes[i], 4);
    std::memcpy(&high, &bytes[i + 4], 4);
    low ^= crc;
    crc = kCrcTables[7][low & 0xFF] ^ kCrcTables[6][(low >> 8) & 0xFF] ^ kCrcTables[5][(low >> 16) & 0xFF] ^
          kCrcTables[4][low >> 24] ^ kCrcTables[3][high & 0xFF] ^ kCrcTables[2][(high >> 8) & 0xFF] ^
          kCrcTables[1][(high >> 16) & 0xFF] ^ kCrcTables[0][high >> 24];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ bytes[i]) & 0xFF];
  return ~crc;
}

CaptureFile::File CaptureFile::create(const std::string& path) {
  return {OwnDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644))};
}

void CaptureFile::reopen() {
  OwnDescriptor again(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (again.leads_where(file_.descriptor) &&
      ::lseek(again.number(), static_cast<off_t>(file_.size_bytes), SEEK_SET) >= 0) {
    file_.descriptor = again;
    return;
  }
  again.close();
  error_ = EBADF;
}

int CaptureFile::open(const std::string& path) {
  path_ = path;
  file_ = create(path);
  if (file_.descriptor.number() < 0) return errno;
  write_header();
  return error_;
}

void CaptureFile::write_header() {
  struct {
    char magic[8] = {'B', 'R', 'A', 'G', 'G', 'C', 'A', 'P'};
    uint32_t version = 1;
    int32_t error = 0;
  } const header;
  write_all(&header, sizeof header);
  file_.size_bytes = sizeof header;
}

void CaptureFile::write(const Chunk& chunk) {
  if (path_.empty() || error_ != 0) return;
  if (file_.descriptor.number() < 0) reopen();
  const std::vector<uint8_t>& payload = chunk.payload();
  ChunkHeader header;
  header.type = static_cast<uint16_t>(chunk.type());
  header.rows = chunk.rows();
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  header.payload_crc = crc32(payload);
  header.header_crc = crc32({reinterpret_cast<const uint8_t*>(&header), 20});
  constexpr uint64_t kZeros = 0;
  const size_t padding = (8 - payload.size() % 8) % 8;
  write_all(&header, sizeof header);
  write_all(payload.data(), payload.size());
  write_all(&kZeros, padding);
  if (error_ == 0) {
    file_.size_bytes += sizeof header + payload.size() + padding;
  } else {
    tell_error();
  }
}

// In the header, which takes no room that a full disk lacks. A torn chunk that cannot be cut off harms no reader.
void CaptureFile::tell_error() {
  const int file = file_.descriptor.number();
  if (file < 0) return;
  const int32_t error = error_;
  (void)!::ftruncate(file, static_cast<off_t>(file_.size_bytes));
  if (::pwrite(file, &error, sizeof error, kErrorAt) == sizeof error) return;
  // RLIMIT_FSIZE holds for calls alone.
  constexpr size_t kSize = kErrorAt + sizeof error;
  void* const header = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (header == MAP_FAILED) return;
  std::memcpy(static_cast<char*>(header) + kErrorAt, &error, sizeof error);
  ::munmap(header, kSize);
}

void CaptureFile::write_all(const void* bytes, size_t size) {
  const auto* next = static_cast<const char*>(bytes);
  const int file = file_.descriptor.number();
  while (size > 0 && error_ == 0) {
    const ssize_t written = ::write(file, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
      return;
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
}

bool CaptureFile::begin_rewrite() {
  const File file = create(path_ + ".new");
  if (file.descriptor.number() < 0) return false;
  replaced_ = std::exchange(file_, file);
  write_header();
  return true;
}

void CaptureFile::commit_rewrite() {
  const std::string rewritten = path_ + ".new";
  if (error_ == 0 && std::rename(rewritten.c_str(), path_.c_str()) == 0) {
    replaced_.descriptor.close();
  } else {  // keep the old file: it is complete up to here
    file_.descriptor.close();
    ::unlink(rewritten.c_str());
    file_ = replaced_;
    if (error_ != 0) tell_error();
  }
  replaced_ = {};
}

void CaptureFile::close() {
  file_.descriptor.close();
  path_.clear();
}

}  // namespace bragg
