#include <cblas.h>
#include <fmt/ranges.h>

#include "apps/cli/verb.h"
#include "apps/study/ranks.h"
#include "core/instructions.h"
#include "core/parallel.h"

namespace norma::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

Action version_verb(Options&) {
  return [] {
    fmt::print("norma     {}\n", NORMA_VERSION);
    fmt::print("compiler  {}\n", compiler());
    fmt::print("OpenBLAS  {}\n", openblas_get_config());
    fmt::print("Highway   {} (of {})\n", instruction_set(), fmt::join(instruction_sets(), ", "));
    fmt::print("OpenMP    {}\n", has_threads() ? "yes" : "no: every loop runs on one thread");
    fmt::print("MPI       {}\n", study::Ranks::available() ? "yes" : "no");
    fmt::print("threads   {}\n", num_threads());
    return kDone;
  };
}

}  // namespace norma::cli
