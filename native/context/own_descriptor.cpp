#include "context/own_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace bragg {
namespace {

// A table of 1,024 descriptors takes 8 KB, which a fork copies.
constexpr rlim_t kMostNumbers = 1024;
constexpr rlim_t kShareAtTop = 8;
constexpr int kFirstAfterStreams = STDERR_FILENO + 1;

int first_high_number() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFirstAfterStreams;
  const rlim_t numbers = std::min(limit.rlim_cur, kMostNumbers);
  return std::max(static_cast<int>(numbers - numbers / kShareAtTop), kFirstAfterStreams);
}

// Where there is no room at the top it stays, unless it would be taken for a standard stream.
int moved_up(int opened) noexcept {
  int moved = fcntl(opened, F_DUPFD_CLOEXEC, first_high_number());
  if (moved < 0 && opened >= kFirstAfterStreams) return opened;
  if (moved < 0) moved = fcntl(opened, F_DUPFD_CLOEXEC, kFirstAfterStreams);
  ::close(opened);
  if (moved < 0) errno = EMFILE;
  return moved;
}

}  // namespace

OwnDescriptor::OwnDescriptor(int opened) noexcept {
  if (opened < 0) return;
  number_ = moved_up(opened);
  struct stat found{};
  if (number_ < 0 || fstat(number_, &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

int OwnDescriptor::number() const noexcept {
  struct stat found{};
  const bool is_ours = number_ >= 0 && fstat(number_, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
  return is_ours ? number_ : -1;
}

bool OwnDescriptor::leads_where(const OwnDescriptor& other) const noexcept {
  return device_ == other.device_ && inode_ == other.inode_;
}

void OwnDescriptor::close() noexcept {
  if (const int ours = number(); ours >= 0) ::close(ours);
  number_ = -1;
}

}  // namespace bragg
