#include "context/ready_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace bragg {

// "<ns it ran> <ns it was ready> <times it ran>"
int64_t ReadyTime::ns() noexcept {
  if (file_.number() < 0) file_ = OwnDescriptor(open(path_, O_RDONLY | O_CLOEXEC));
  const int file = file_.number();
  char text[96];
  const ssize_t size = file >= 0 ? pread(file, text, sizeof text - 1, 0) : 0;
  if (size <= 0) return ns_;
  text[size] = '\0';
  char* end = nullptr;
  (void)std::strtoll(text, &end, 10);
  ns_ = std::strtoll(end, nullptr, 10);
  return ns_;
}

void ReadyTime::forget() noexcept {
  file_.close();
  ns_ = 0;
}

}  // namespace bragg
