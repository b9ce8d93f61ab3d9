// A descriptor of ours in a process whose program has descriptors, too.
#pragma once

#include <sys/types.h>

namespace bragg {

// Daemons close descriptors that they do not know, ours among them, and the next file of the program may get such a
// number. So each use asks whether it still leads where it did: 0.2 us.
//
// Its number is high: the program's files get the numbers that they would get alone, those of its closed standard
// streams included. Threads: one at a time.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int opened) noexcept;  // closed on exec; -1: nothing

  [[nodiscard]] int number() const noexcept;                                  // -1: nothing, or not ours any more
  [[nodiscard]] bool leads_where(const OwnDescriptor& other) const noexcept;  // or led, when both were opened
  void close() noexcept;                                                      // unless it is the program's by now

 private:
  int number_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace bragg
