#include <fmt/format.h>

#include "apps/cli/verb.h"
#include "apps/training/run_config.h"

namespace norma::cli {

// `norma schema > configs/schema.json` and `norma schema --markdown >
// docs/config.md` write the files that the repository holds; a test compares
// them.
Action schema_verb(Options& options) {
  const auto markdown = std::make_shared<bool>(false);
  options.add_flag("--markdown", *markdown, "Print the documentation of every key instead");
  return [markdown] {
    fmt::print("{}", *markdown ? run_config_markdown() : run_config_schema());
    return kDone;
  };
}

}  // namespace norma::cli
