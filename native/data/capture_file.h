// Writes the capture format of native/data/CAPTURE.md: append-only chunks, each checked on its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "context/own_descriptor.h"
#include "data/chunk_layouts.h"

namespace bragg {

[[nodiscard]] uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0) noexcept;

// Builds one chunk: columns one after another, each padded to 8 bytes.
class Chunk {
 public:
  Chunk(ChunkType type, uint32_t rows) : type_(type), rows_(rows), columns_(columns_of(type)) {}

  void number(uint64_t value) { append(&value, sizeof value); }
  void text(std::string_view value) { append(value.data(), value.size()); }
  void pad() { payload_.resize((payload_.size() + 7) / 8 * 8); }

  template <class T>
  void column(std::span<const T> values) {
    append(values.data(), values.size_bytes());
    pad();
  }

  // The next column of the layout, out of a sequence of rows.
  template <class Rows, class Get>
  void column(const Rows& rows, Get&& get) {
    switch (columns_.types.at(n_columns_++)) {
      case ColumnType::U32:
        return column_of<uint32_t>(rows, get);
      case ColumnType::U64:
        return column_of<uint64_t>(rows, get);
      case ColumnType::I64:
        return column_of<int64_t>(rows, get);
      case ColumnType::F64:
        return column_of<double>(rows, get);
    }
  }

  // One column of a chunk that has no layout.
  template <class T, class Rows, class Get>
  void column_of(const Rows& rows, Get&& get) {
    const size_t start = payload_.size();
    payload_.resize(start + rows.size() * sizeof(T));
    auto* out = reinterpret_cast<T*>(payload_.data() + start);
    for (const auto& row : rows) *out++ = static_cast<T>(get(row));
    pad();
  }

  [[nodiscard]] ChunkType type() const { return type_; }
  [[nodiscard]] uint32_t rows() const { return rows_; }
  [[nodiscard]] const std::vector<uint8_t>& payload() const { return payload_; }

 private:
  void append(const void* bytes, size_t size) {
    const size_t start = payload_.size();
    payload_.resize(start + size);
    if (size > 0) std::memcpy(payload_.data() + start, bytes, size);
  }

  ChunkType type_;
  uint32_t rows_;
  ColumnTypes columns_;
  size_t n_columns_ = 0;
  std::vector<uint8_t> payload_;
};

// Threads: one at a time. After a failed write the file is cut back to its last whole chunk and nothing more is
// written; `error` and the file's header say why, once and for all.
class CaptureFile {
 public:
  CaptureFile() = default;
  ~CaptureFile() { close(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  [[nodiscard]] int open(const std::string& path);  // 0 or errno
  void write(const Chunk& chunk);
  void close();

  // Starts a new file that replaces the old one at `commit_rewrite`.
  [[nodiscard]] bool begin_rewrite();
  void commit_rewrite();

  [[nodiscard]] uint64_t size_bytes() const { return file_.size_bytes; }
  [[nodiscard]] int error() const { return error_; }

 private:
  struct File {
    OwnDescriptor descriptor;
    uint64_t size_bytes = 0;  // end of the last whole chunk
  };

  [[nodiscard]] static File create(const std::string& path);
  void reopen();
  void tell_error();
  void write_all(const void* bytes, size_t size);
  void write_header();

  std::string path_;  // "": closed
  File file_;
  File replaced_;
  int error_ = 0;
};

}  // namespace bragg
