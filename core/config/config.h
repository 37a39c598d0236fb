// Configurations, declared once. A plain structure with its defaults says, in fields(), the JSON
// key, the member, a sentence and the limits of every field:
//
//   struct SgdConfig {
//     static constexpr const char* type = "sgd";
//     static constexpr const char* doc = "Stochastic gradient descent, with momentum.";
//     static constexpr const char* source = "torch.optim.SGD";
//     double lr = 1e-3;
//     double momentum = 0;
//     bool nesterov = false;
//     static config::Fields fields() {
//       using namespace config;
//       return {field("lr", &SgdConfig::lr, "Rate of a step.", above(0)),
//               field("momentum", &SgdConfig::momentum, "Share of the last step.", at_least(0),
//               below(1)), field("nesterov", &SgdConfig::nesterov, "Look ahead along the
//               momentum.")};
//     }
//     void check(config::Problems& problems, const std::string& path) const {
//       if (nesterov && momentum == 0) {
//         problems.add(config::join(path, "nesterov"), "needs a momentum above 0; got 0");
//       }
//     }
//   };
//
// From it come: parsing with all problems at once, writing with all defaults filled in, the JSON
// Schema, the documentation, and (on the JSON, see json.h) --set, comparison and hash. `type`,
// `doc` and `source` are needed in members of a family (one_of.h). `check` is optional, and runs
// only when every field by itself is valid. An enum names its values, in order, with
//
//   constexpr auto config_names(Kind) { return std::to_array<std::string_view>({"decoder",
//   "encoder"}); }
#pragma once

#include <string>
#include <string_view>

#include "core/config/json.h"
#include "core/config/one_of.h"
#include "core/config/problems.h"
#include "core/config/type.h"

namespace norma::config {

// --- Over descriptions; the templates below are what one calls. --------------------------------
// Reads `json` into `target`. Throws ConfigError with every problem; `path` stands before theirs.
void read(const Type& type, const Json& json, void* target, const std::string& path,
          std::string_view source);
// JSON Schema (draft 2020-12) of a configuration file.
[[nodiscard]] Json schema(const Type& type, std::string_view title);
// Markdown: a table a structure, then the families that it uses. `title` is the first heading.
[[nodiscard]] std::string markdown(const Type& type, std::string_view title);
// Every family below a type, in the order of the fields; each once.
[[nodiscard]] std::vector<const FamilyType*> families(const Type& type);

// --- The configuration T. ----------------------------------------------------------------------
// Throws ConfigError with every problem. `path` ("optimizer") stands before the paths in messages,
// `source` (a file's name) before the whole.
template <class T>
[[nodiscard]] T parse(const Json& json, const std::string& path = {},
                      std::string_view source = {}) {
  T out{};
  read(type_of<T>(), json, &out, path, source);
  return out;
}

// The Json of all fields, defaults included (`auto`: Json is only declared here):
// parse<T>(to_json(x)) is x again.
template <class T>
[[nodiscard]] auto to_json(const T& config) {
  return type_of<T>().write(&config);
}

template <class T>
[[nodiscard]] auto schema(std::string_view title) {
  return schema(type_of<T>(), title);
}

template <class T>
[[nodiscard]] std::string markdown(std::string_view title) {
  return markdown(type_of<T>(), title);
}

}  // namespace norma::config
