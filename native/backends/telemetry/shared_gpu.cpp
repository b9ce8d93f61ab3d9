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
struct OpenSocket {
  enum class State : int { Free, Changing, Open };
  std::atomic<State> state{State::Free};
  OwnDescriptor socket;

  bool change(State from) { return state.compare_exchange_strong(from, State::Changing); }
};
constinit std::array<OpenSocket, 256> open_sockets{};

OwnDescriptor opened(int number) {
  const OwnDescriptor socket(number);
  if (socket.number() < 0) return socket;
  for (OpenSocket& each : open_sockets) {
    if (!each.change(OpenSocket::State::Free)) continue;
    each.socket = socket;
    each.state.store(OpenSocket::State::Open);
    break;
  }
  return socket;
}

void close_socket(OwnDescriptor& socket) {
  for (OpenSocket& each : open_sockets) {
    if (!each.change(OpenSocket::State::Open)) continue;
    const bool is_found = each.socket.leads_where(socket);
    each.state.store(is_found ? OpenSocket::State::Free : OpenSocket::State::Open);
    if (is_found) break;
  }
  socket.close();
}

OwnDescriptor new_socket() { return opened(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

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
  if (is_alone_ || listener_.number() >= 0) return true;
  if (connection_.number() >= 0) return monotonic_ns - heard_ns_ > kPatienceNs && give_up_sharing();
  if (bind_name()) return true;
  heard_ns_ = monotonic_ns;
  return !connect_to_sampler() && is_alone_;
}

bool SharedGpu::bind_name() {
  const Address address(name_);
  OwnDescriptor socket = new_socket();
  const int number = socket.number();
  if (number < 0) return give_up_sharing();
  if (bind(number, address.get(), address.bytes) == 0 && listen(number, kBacklog) == 0) {
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
  OwnDescriptor socket = new_socket();
  const int number = socket.number();
  ucred sampler{};
  socklen_t bytes = sizeof sampler;
  if (number >= 0 && connect(number, address.get(), address.bytes) == 0 &&
      getsockopt(number, SOL_SOCKET, SO_PEERCRED, &sampler, &bytes) == 0) {
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

void SharedGpu::publish(const std::vector<TimedReading>& readings) {
  const int accepting = listener_.number();
  if (accepting < 0) return;
  // Without a connection accept4 takes 20 us, and poll 1 us.
  for (pollfd asked{accepting, POLLIN, 0}; poll(&asked, 1, 0) > 0;) {
    const int listener = accept4(accepting, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (listener < 0) break;
    listeners_.push_back(opened(listener));
  }
  std::erase_if(listeners_, [&](OwnDescriptor& listener) {
    const bool is_gone = std::ranges::any_of(readings, [&](const TimedReading& each) {
      const Packet packet{each.monotonic_ns, each.reading.values, each.reading.clock_reasons.value_or(0),
                          each.reading.clock_reasons.has_value()};
      const auto sent = send(listener.number(), &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
      return sent != sizeof packet && errno != EAGAIN;  // one that does not listen for long misses readings
    });
    if (is_gone) close_socket(listener);
    return is_gone;
  });
}

std::vector<TimedReading> SharedGpu::receive(int64_t monotonic_ns) {
  std::vector<TimedReading> readings;
  for (int connection = connection_.number(); connection >= 0; connection = connection_.number()) {
    Packet packet;
    const ssize_t bytes = recv(connection, &packet, sizeof packet, MSG_DONTWAIT);
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
  for (OwnDescriptor& listener : listeners_) close_socket(listener);
  listeners_.clear();
  close_socket(listener_);
  close_socket(connection_);
  sampler_ = 0;
}

void SharedGpu::close_all_after_fork() noexcept {
  for (OpenSocket& each : open_sockets)
    if (each.state.exchange(OpenSocket::State::Free) == OpenSocket::State::Open) each.socket.close();
}

}  // namespace bragg
