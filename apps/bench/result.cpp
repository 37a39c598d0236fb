#include "apps/bench/result.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace norma::bench {

using Json = nlohmann::ordered_json;

std::string to_json_line(const Result& r) {
  return Json{{"framework", r.framework}, {"version", r.version}, {"workload", r.workload},
              {"threads", r.threads},     {"params", r.params},   {"ms_min", r.ms_min},
              {"ms_median", r.ms_median}, {"steps", r.steps},     {"peak_rss_mib", r.peak_rss_mib}}
      .dump();
}

Result from_json_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  require(json.is_object(), "bench: expected a line of JSON; got \"{}\"", line);
  const auto read = [&](const char* key, auto& value) {
    const auto found = json.find(key);
    require(found != json.end(), "bench: the result has no \"{}\": {}", key, line);
    try {
      found->get_to(value);
    } catch (const Json::exception&) {
      throw Error::format("bench: the result's \"{}\" is of another type: {}", key, line);
    }
  };
  Result r;
  read("framework", r.framework);
  read("version", r.version);
  read("workload", r.workload);
  read("threads", r.threads);
  read("params", r.params);
  read("ms_min", r.ms_min);
  read("ms_median", r.ms_median);
  read("steps", r.steps);
  read("peak_rss_mib", r.peak_rss_mib);
  require(r.ms_min > 0 && r.ms_median > 0, "bench: expected times above 0; got {}", line);
  return r;
}

}  // namespace norma::bench
