#include "core/instructions.h"

#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"

namespace norma {
namespace {

// Highway's numbers, the best first. What it says once a set was asked for is that set.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  return all;
}

std::atomic<std::size_t> g_used{0};

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string instruction_set() { return hwy::TargetName(targets()[g_used]); }

void set_instruction_set(std::string_view name) {
  const std::vector<std::string> names = instruction_sets();
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(),
          "expected an instruction set that this machine has, {}; got \"{}\"; leave it "
          "out for the best",
          fmt::join(names, ", "), name);
  const auto used = static_cast<std::size_t>(found - names.begin());
  hwy::SetSupportedTargetsForTest(used == 0 ? 0 : targets()[used]);
  g_used = used;
}

}  // namespace norma
