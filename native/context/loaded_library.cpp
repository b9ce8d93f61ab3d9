#include "context/loaded_library.h"

#include <climits>
#include <cstdlib>

namespace bragg {

LoadedLibrary LoadedLibrary::already_mapped(const std::string& path) {
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), path};
}

LoadedLibrary LoadedLibrary::open(const std::string& path) {
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), path};
}

std::vector<std::string> mapped_libraries(const std::string& prefix) {
  struct Search {
    const std::string& prefix;
    std::vector<std::string> found;
  } search{prefix, {}};
  library_walks.walk(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const std::string path = info->dlpi_name;
        const size_t slash = path.rfind('/');
        const size_t name = slash == std::string::npos ? 0 : slash + 1;
        if (path.compare(name, wanted.prefix.size(), wanted.prefix) == 0) wanted.found.push_back(path);
        return 0;
      },
      &search);
  return search.found;
}

uint64_t libraries_loaded() {
  uint64_t count = 0;
  library_walks.walk(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

std::string own_library_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_library_path), &info) == 0) return "";
  char absolute[PATH_MAX] = "";
  return realpath(info.dli_fname, absolute) != nullptr ? absolute : info.dli_fname;
}

}  // namespace bragg
