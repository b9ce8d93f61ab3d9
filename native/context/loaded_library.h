// Shared libraries that are found at run time, never linked.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace bragg {

class LoadedLibrary {
 public:
  LoadedLibrary() = default;

  // Only a copy that some part of the program has mapped already.
  [[nodiscard]] static LoadedLibrary already_mapped(const std::string& path);
  [[nodiscard]] static LoadedLibrary open(const std::string& path);

  [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // nullptr if the library lacks the symbol.
  template <class Function>
  [[nodiscard]] Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(dlsym(handle_, symbol));
  }

 private:
  LoadedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_ = nullptr;  // never closed: CUPTI and the driver do not survive it
  std::string path_;
};

// dl_iterate_phdr, for what is not held over a fork by another lock: the child of a fork that came in the middle of a
// walk could load no library any more.
class LibraryWalks {
 public:
  void walk(int (*visit)(dl_phdr_info*, size_t, void*), void* data) {
    const std::lock_guard lock(mutex_);
    dl_iterate_phdr(visit, data);
  }
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

inline constinit LibraryWalks library_walks;

// Paths of mapped libraries whose file name starts with `prefix`.
[[nodiscard]] std::vector<std::string> mapped_libraries(const std::string& prefix);

// How many libraries the process has ever loaded: cheap, and greater after each.
[[nodiscard]] uint64_t libraries_loaded();

// Path of the library this code is in.
[[nodiscard]] std::string own_library_path();

}  // namespace bragg
