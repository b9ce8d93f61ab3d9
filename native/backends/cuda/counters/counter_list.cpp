#include "backends/cuda/counters/counter_list.h"

#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/counters/counter_metrics.h"
#include "backends/cuda/counters/pm_sampler.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/cuda_driver.h"
#include "backends/cuda/driver/cuda_functions.h"
#include "data/json.h"

namespace bragg {
namespace {

std::string no_counters(std::string_view reason) { return JsonObject().put("reason", reason).text(); }

bool fits_one_pass(PmSampler& sampler, const std::vector<std::string>& metrics) {
  size_t passes = 0;
  return !sampler.choose(metrics, passes) && passes == 1;
}

// The first alternative that this chip and release have; empty: none.
std::vector<std::string> known_metrics(PmSampler& sampler, const Counter& counter) {
  for (const auto& alternative : counter.alternatives)
    if (fits_one_pass(sampler, alternative)) return alternative;
  return {};
}

std::string list_json(PmSampler& sampler) {
  JsonObject counters, sets;
  for (const NamedCounter& named : named_counters()) {
    JsonObject row;
    row.put("counts", named.counter.track).put("unit", named.counter.unit).put("sets", named.sets);
    row.raw("metrics", json_array(known_metrics(sampler, named.counter), json_string));
    counters.raw(named.name, row.text());
  }
  for (const char* set : {"default", "dram", "tensor", "l2", "units", "nvlink", "pcie"}) {
    std::vector<std::string> together;
    for (const Counter& counter : counters_of(set))
      for (const std::string& metric : known_metrics(sampler, counter)) together.push_back(metric);
    size_t passes = 0;
    if (!together.empty() && !sampler.choose(together, passes)) sets.put(set, passes);
  }
  std::vector<std::string> own;
  for (const std::string& metric : sampler.known_metrics())
    if (fits_one_pass(sampler, {metric})) own.push_back(metric);
  return JsonObject()
      .put("chip", sampler.chip())
      .raw("counters", counters.text())
      .raw("sets", sets.text())
      .raw("metrics", json_array(own, json_string))
      .text();
}

std::string list_of_first_gpu() {
  const CuptiLibrary& cupti = cuda_backend::cupti_library();
  std::string reason;
  PmSamplingLibrary library;
  if (!load_pm_sampling(cupti, library, reason)) return no_counters(reason);
  const CudaFunctions* driver = CudaFunctions::find(reason);
  if (driver == nullptr) return no_counters(reason);
  cuda::Context context = nullptr;
  if (const auto result = driver->retain_primary(&context, 0); result != cuda::Result::Success)
    return no_counters(driver->failure("cuDevicePrimaryCtxRetain", result));
  std::string json;
  {
    PmSampler sampler(library, 0);
    auto failure = sampler.look();
    size_t passes = 0;
    if (const auto unknown = failure ? failure : sampler.choose({}, passes); unknown.is_unknown_chip())
      failure = unknown;
    json = failure ? no_counters(counter_refusal(cupti, failure.call, failure.result)) : list_json(sampler);
  }
  (void)driver->release_primary(0);
  return json;
}

}  // namespace

std::string counter_list_json(const std::string& library_candidates) {
  if (const std::string refusal = CudaDriver::initialize(); !refusal.empty()) return no_counters(refusal);
  cuda_backend::start(library_candidates);
  if (cuda_backend::state() != cuda_backend::State::Attached)
    return no_counters("CUPTI cannot be used: " + cuda_backend::description_json());
  std::string json = list_of_first_gpu();
  cuda_backend::detach();
  return json;
}

}  // namespace bragg
