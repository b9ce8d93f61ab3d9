#include "api/session_options.h"

#include <string>

#include "check.h"

namespace {

using bragg::read_session_options;

TEST(options_of_a_session_are_those_of_the_object) {
  bragg_session_options options{};
  options.flush_interval_ms = 1000;
  const char* json =
      R"({"backend": "cuda", "context": "native", "data": "trace", "gpu_api": "sync", "sampling": "windows",
          "flush_interval_ms": 50, "sample_budget": 0.25, "sample_interval_us": null, "regions": "step,\"a\\",
          "no_idle": true, "modules": true})";
  CHECK_EQ(read_session_options(json, options), std::string());
  CHECK_EQ(options.backend, static_cast<int>(BRAGG_CUDA));
  CHECK_EQ(options.python_context, 1);
  CHECK_EQ(options.native_context, 1);
  CHECK_EQ(options.trace, 1);
  CHECK_EQ(options.gpu_api, static_cast<int>(BRAGG_GPU_API_SYNC));
  CHECK_EQ(options.sampling, static_cast<int>(BRAGG_SAMPLE_WINDOWS));
  CHECK_EQ(options.flush_interval_ms, 50u);
  CHECK_EQ(options.sample_budget, 0.25);
  CHECK_EQ(options.sample_interval_us, 0u);
  CHECK_EQ(options.no_idle, 1);
}

TEST(options_that_are_not_named_keep_their_values) {
  bragg_session_options options{};
  options.flush_interval_ms = 1000;
  CHECK_EQ(read_session_options(" { } ", options), std::string());
  CHECK_EQ(options.flush_interval_ms, 1000u);
}

TEST(options_of_another_kind_are_refused) {
  const auto problem = [](const char* json) {
    bragg_session_options options{};
    return read_session_options(json, options);
  };
  CHECK_EQ(problem(R"({"backend": "gpu"})"), std::string("unknown backend: gpu"));
  CHECK_EQ(problem(R"({"sample_period": "5"})"),
           std::string("option sample_period of a session must be a number in range: 5"));
  CHECK_EQ(problem(R"({"flush_interval_ms": -1})"),
           std::string("option flush_interval_ms of a session must be a number in range: -1"));
  for (const char* json :
       {"", "soon", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":[1]}", "{\"a\":1} x", "{\"a\":\"\\"})
    CHECK_EQ(problem(json), std::string("the options of a session are not a JSON object of plain values"));
}

}  // namespace
