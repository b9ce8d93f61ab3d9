#include "backends/cuda/samples/sampler_lock.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace bragg {
namespace {

struct Address {
  explicit Address(std::string_view uuid) {
    value.sun_family = AF_UNIX;  // sun_path[0] stays 0: an abstract name
    const std::string name = "bragg-samples-" + std::string(uuid);
    std::copy_n(name.begin(), std::min(name.size(), sizeof value.sun_path - 1), value.sun_path + 1);
    size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
  sockaddr_un value{};
  socklen_t size_bytes;
};

int new_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Of the process that listens at this address; 0: it does not tell.
pid_t owner(const Address& address) {
  const int asking = new_socket();
  ucred credentials{};
  socklen_t size_bytes = sizeof credentials;
  if (::connect(asking, address.get(), address.size_bytes) != 0 ||
      ::getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &credentials, &size_bytes) != 0)
    credentials.pid = 0;
  ::close(asking);
  return credentials.pid;
}

}  // namespace

pid_t SamplerLock::acquire(const std::string& uuid) {
  if (uuid.empty()) return ::getpid();
  const Address address(uuid);
  socket_ = OwnDescriptor(new_socket());
  if (::bind(socket_.number(), address.get(), address.size_bytes) == 0) {
    (void)::listen(socket_.number(), 1);  // so that others can ask whose it is
    return ::getpid();
  }
  const bool is_taken = errno == EADDRINUSE;
  release();
  return is_taken ? owner(address) : ::getpid();  // no such sockets here: nothing is known of others
}

void SamplerLock::release() { socket_.close(); }

}  // namespace bragg
