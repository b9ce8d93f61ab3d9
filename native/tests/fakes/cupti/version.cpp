#include "cupti/version.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "settings.h"

namespace bragg::fake {
namespace {

// From the vendor's headers of each release; the last update of each is taken.
constexpr Release kReleases[] = {
    {"12.3", 21, 733},     {"12.4", 22, 754},     {"12.5", 23, 761},     {"12.6", 24, 763},
    {"12.8", 26, 782},     {"12.9", 28, 784},     {"13.0", 130001, 807}, {"13.1", 130101, 846},
    {"13.2", 130202, 846}, {"13.3", 130301, 860}, {"13.4", 130401, 868}, {"13.5", 130500, 877},
};

const Release& find_release() {
  const std::string wanted = setting("CUPTI_VERSION", "13.0");
  const auto found = std::find_if(std::begin(kReleases), std::end(kReleases),
                                  [&](const Release& release) { return wanted == release.name; });
  if (found != std::end(kReleases)) return *found;
  std::fprintf(stderr, "fake CUPTI: BRAGG_FAKE_CUPTI_VERSION=%s is not emulated\n", wanted.c_str());
  std::abort();
}

}  // namespace

const Release& emulated_release() {
  static const Release& release = find_release();
  return release;
}

}  // namespace bragg::fake
