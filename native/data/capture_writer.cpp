#include "data/capture_writer.h"

#include <fcntl.h>
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

int CaptureWriter::open(const std::string& path) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) return errno;
  write_header();
  return error_;
}

void CaptureWriter::write_header() {
  struct {
    char magic[8] = {'B', 'R', 'A', 'G', 'G', 'C', 'A', 'P'};
    uint32_t version = 1;
    uint32_t zero = 0;
  } const header;
  write_all(&header, sizeof header);
  size_bytes_ = sizeof header;
}

void CaptureWriter::write(const Chunk& chunk) {
  if (fd_ < 0 || error_ != 0) return;
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
    size_bytes_ += sizeof header + payload.size() + padding;
  } else if (::ftruncate(fd_, static_cast<off_t>(size_bytes_)) != 0) {
    // A torn chunk stays at the end; readers check every chunk and stop there.
  }
}

void CaptureWriter::write_all(const void* bytes, size_t size) {
  const auto* next = static_cast<const char*>(bytes);
  while (size > 0 && error_ == 0) {
    const ssize_t written = ::write(fd_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
      return;
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
}

bool CaptureWriter::begin_rewrite() {
  const int fd = ::open((path_ + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  replaced_fd_ = std::exchange(fd_, fd);
  replaced_size_ = size_bytes_;
  write_header();
  return true;
}

void CaptureWriter::commit_rewrite() {
  const std::string rewritten = path_ + ".new";
  if (error_ == 0 && std::rename(rewritten.c_str(), path_.c_str()) == 0) {
    ::close(replaced_fd_);
  } else {  // keep the old file: it is complete up to here
    ::close(fd_);
    ::unlink(rewritten.c_str());
    fd_ = replaced_fd_;
    size_bytes_ = replaced_size_;
  }
  replaced_fd_ = -1;
}

void CaptureWriter::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace bragg
