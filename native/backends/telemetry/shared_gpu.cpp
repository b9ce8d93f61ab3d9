#include "backends/telemetry/shared_gpu.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bragg {
namespace {

// A process that samples and says nothing for so long hangs, or samples too seldom.
constexpr int64_t kPatienceNs = 5'000'000'000;
constexpr int kMostFailures = 10;
constexpr int kBacklog = 64;

// What one process sends to another of the same release.
struct Packet {
  int64_t monotonic_ns;
  std::array<double, gpu_quantity::kCount> values;
  uint64_t clock_reasons;
  uint64_t has_reasons;
};

// All that is open, for a forked child. Beyond so many a child keeps its parent's, which delays a takeover.
constinit std::array<std::atomic<int>, 256> open_sockets{};  // 0: none

int opened(int socket) {
  if (socket < 0) return -1;
  for (std::atomic<int>& each : open_sockets)
    if (int nothing = 0; each.compare_exchange_strong(nothing, socket)) break;
  return socket;
}

void close_socket(int& socket) {
  if (socket < 0) return;
  for (std::atomic<int>& each : open_sockets)
    if (int expected = socket; each.compare_exchange_strong(expected, 0)) break;
  close(std::exchange(socket, -1));
}

int new_socket() { return opened(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

struct Address {
  sockaddr_un path{};
  socklen_t bytes;

  // Abstract: the first character is 0.
  explicit Address(const std::string& name) {
    path.sun_family = AF_UNIX;
    const size_t length = std::min(name.size(), sizeof path.sun_path - 1);
    std::memcpy(path.sun_path + 1, name.data(), length);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&path); }
};

}  // namespace

SharedGpu::SharedGpu(std::string_view uuid)
    : name_("bragg-telemetry-1-" + std::to_string(geteuid()) + "-" + std::string(uuid)) {}

bool SharedGpu::claim(int64_t monotonic_ns) {
  if (is_alone_ || listener_ >= 0) return true;
  if (connection_ >= 0) return monotonic_ns - heard_ns_ > kPatienceNs && give_up_sharing();
  if (bind_name()) return true;
  heard_ns_ = monotonic_ns;
  return !connect_to_sampler() && is_alone_;
}

bool SharedGpu::bind_name() {
  const Address address(name_);
  int socket = new_socket();
  if (socket < 0) return give_up_sharing();
  if (bind(socket, address.get(), address.bytes) == 0 && listen(socket, kBacklog) == 0) {
    listener_ = socket;
    sampler_ = 0;
    return true;
  }
  const bool is_taken = errno == EADDRINUSE;
  close_socket(socket);
  return !is_taken && give_up_sharing();
}

bool SharedGpu::connect_to_sampler() {
  const Address address(name_);
  int socket = new_socket();
  ucred sampler{};
  socklen_t bytes = sizeof sampler;
  if (socket >= 0 && connect(socket, address.get(), address.bytes) == 0 &&
      getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &sampler, &bytes) == 0) {
    if (sampler.uid == geteuid()) {
      connection_ = socket;
      sampler_ = sampler.pid;
      failures_ = 0;
      return true;
    }
    failures_ = kMostFailures;
  }
  close_socket(socket);
  if (++failures_ > kMostFailures) (void)give_up_sharing();
  return false;
}

bool SharedGpu::give_up_sharing() {
  release();
  is_alone_ = true;
  return true;
}

void SharedGpu::publish(const Reading& reading) {
  if (listener_ < 0) return;
  // Without a connection accept4 takes 20 us, and poll 1 us.
  for (pollfd asked{listener_, POLLIN, 0}; poll(&asked, 1, 0) > 0;) {
    const int listener = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (listener < 0) break;
    listeners_.push_back(opened(listener));
  }
  const Packet packet{reading.monotonic_ns, reading.reading.values, reading.reading.clock_reasons.value_or(0),
                      reading.reading.clock_reasons.has_value()};
  std::erase_if(listeners_, [&](int& listener) {
    const bool is_sent = send(listener, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof packet;
    const bool is_gone = !is_sent && errno != EAGAIN;  // one that does not listen for long misses readings
    if (is_gone) close_socket(listener);
    return is_gone;
  });
}

std::vector<SharedGpu::Reading> SharedGpu::receive(int64_t monotonic_ns) {
  std::vector<Reading> readings;
  while (connection_ >= 0) {
    Packet packet;
    const ssize_t bytes = recv(connection_, &packet, sizeof packet, MSG_DONTWAIT);
    if (bytes < 0 && errno == EAGAIN) break;
    if (bytes != sizeof packet) {
      close_socket(connection_);
      break;
    }
    heard_ns_ = monotonic_ns;
    readings.push_back({packet.monotonic_ns, {packet.values, {}}});
    if (packet.has_reasons != 0) readings.back().reading.clock_reasons = packet.clock_reasons;
  }
  return readings;
}

void SharedGpu::release() {
  for (int& listener : listeners_) close_socket(listener);
  listeners_.clear();
  close_socket(listener_);
  close_socket(connection_);
  sampler_ = 0;
}

void SharedGpu::close_all_after_fork() noexcept {
  for (std::atomic<int>& each : open_sockets)
    if (const int socket = each.exchange(0); socket != 0) close(socket);
}

}  // namespace bragg
