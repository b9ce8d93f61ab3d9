#include "backends/telemetry/host_telemetry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bragg {
namespace {

using namespace host_quantity;

// A file takes 20 to 80 us: all of them 10 times a second would be 0.2 % of a core.
constexpr int64_t kSeldomNs = 1'000'000'000;
constexpr size_t kMostBytes = 1 << 16;  // a hundred network devices take 12 KB

// "" where it cannot be read.
std::string content_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  std::string text;
  char piece[4096];
  for (ssize_t got = 1; got > 0 && text.size() < kMostBytes;) {
    got = read(file, piece, sizeof piece);
    if (got > 0) text.append(piece, static_cast<size_t>(got));
  }
  close(file);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n:";
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(kSpace); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpace, end);
  }
  return words;
}

std::optional<uint64_t> number_of(std::string_view word) {
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || stop != word.data() + word.size()) return std::nullopt;
  return number;
}

std::optional<uint64_t> number_at(const std::vector<std::string_view>& words, size_t index) {
  return index < words.size() ? number_of(words[index]) : std::nullopt;
}

// The number that follows a word.
std::optional<uint64_t> number_after(const std::vector<std::string_view>& words, std::string_view name) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == name) return number_of(words[i + 1]);
  return std::nullopt;
}

std::string group_of(const std::string& proc, const std::string& cgroups) {
  const std::string text = content_of(proc + "/cgroup");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("0::")) return cgroups + std::string(line.substr(3)) + "/";
  }
  return "";
}

}  // namespace

HostTelemetry::HostTelemetry(std::string proc, std::string cgroups)
    : proc_(std::move(proc)), group_(group_of(proc_, cgroups)) {}

HostReading HostTelemetry::read(int64_t time_ns) {
  HostReading reading;
  read_process(reading, time_ns);
  if (seldom_read_ns_ != 0 && time_ns - seldom_read_ns_ < kSeldomNs) return reading;
  seldom_read_ns_ = time_ns;
  read_disk(reading, time_ns);
  read_network(reading, time_ns);
  read_group(reading, time_ns);
  return reading;
}

// Fields of stat after the name, which may have spaces and brackets: 0 is the state; 7 and 9 are minor and major
// faults, 11 and 12 user and system time in ticks, 21 resident pages (man 5 proc, fields 10, 12, 14, 15, 24).
void HostTelemetry::read_process(HostReading& reading, int64_t time_ns) {
  const std::string stat = content_of(proc_ + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return;
  const auto words = words_of(std::string_view(stat).substr(name_end + 1));
  const auto minor = number_at(words, 7), major = number_at(words, 9), user = number_at(words, 11),
             system = number_at(words, 12), pages = number_at(words, 21);
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  if (user && system) reading.values[kCpu] = rates_[kCpu].per_second(*user + *system, time_ns) / ticks_per_s * 100;
  if (pages) reading.values[kResident] = static_cast<double>(*pages) * page_bytes;
  if (minor) reading.values[kMinorFaults] = rates_[kMinorFaults].per_second(*minor, time_ns);
  if (major) reading.values[kMajorFaults] = rates_[kMajorFaults].per_second(*major, time_ns);
}

void HostTelemetry::read_disk(HostReading& reading, int64_t time_ns) {
  const std::string text = content_of(proc_ + "/io");
  const auto words = words_of(text);
  if (const auto bytes = number_after(words, "read_bytes"))
    reading.values[kDiskRead] = rates_[kDiskRead].per_second(*bytes, time_ns);
  if (const auto bytes = number_after(words, "write_bytes"))
    reading.values[kDiskWritten] = rates_[kDiskWritten].per_second(*bytes, time_ns);
}

// A line for each interface after two of titles: its name, eight numbers of what was received, eight of what was sent.
void HostTelemetry::read_network(HostReading& reading, int64_t time_ns) {
  const std::string text = content_of(proc_ + "/net/dev");
  uint64_t received = 0, sent = 0;
  bool is_known = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto words = words_of(line);
    const auto in = number_at(words, 1), out = number_at(words, 9);
    if (!in || !out || words[0] == "lo") continue;
    received += *in;
    sent += *out;
    is_known = true;
  }
  if (!is_known) return;
  reading.values[kNetworkReceived] = rates_[kNetworkReceived].per_second(received, time_ns);
  reading.values[kNetworkSent] = rates_[kNetworkSent].per_second(sent, time_ns);
}

void HostTelemetry::read_group(HostReading& reading, int64_t time_ns) {
  if (group_.empty()) return;
  const std::string memory = content_of(group_ + "memory.current");
  if (const auto bytes = number_at(words_of(memory), 0)) reading.values[kGroupMemory] = static_cast<double>(*bytes);
  const std::string cpu = content_of(group_ + "cpu.stat");
  if (const auto us = number_after(words_of(cpu), "throttled_usec"))
    reading.values[kGroupThrottled] = rates_[kGroupThrottled].per_second(*us, time_ns) / 1e4;
}

}  // namespace bragg
