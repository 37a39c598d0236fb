// norma reproduce [NAME...] [--list] [--all] [--out DIR] [--jobs N] [--fresh] [--quiet]
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/cli/study_options.h"
#include "apps/cli/verb.h"
#include "apps/report/index.h"
#include "apps/study/child_process.h"
#include "apps/study/plan.h"
#include "core/config/problems.h"

namespace norma::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDefaultStudy = "warmup";

struct ReproduceArguments {
  std::vector<std::string> names;
  bool list = false;
  bool all = false;
  std::string out = "studies";
  study::StudyOptions options;
};

// The folder of the shipped studies: of the current folder, else beside the installed program, else
// where the program was built from.
std::string experiments_folder() {
  const fs::path program = study::this_program();
  for (const fs::path& configs :
       {fs::path("configs"), program.parent_path().parent_path() / "share/norma/configs",
        fs::path(NORMA_CONFIGS_FOLDER)}) {
    if (fs::is_directory(configs / "experiments")) return (configs / "experiments").string();
  }
  throw Error(
      "no folder configs/experiments here, beside the program or in its sources; call it from the "
      "project's folder");
}

// Names of the shipped studies, sorted.
std::vector<std::string> shipped(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status list(const std::string& folder) {
  std::size_t width = 0;
  for (const std::string& name : shipped(folder)) width = std::max(width, name.size());
  for (const std::string& name : shipped(folder)) {
    const study::Plan plan = study::make_plan(study::load_study(folder + "/" + name + ".json"));
    fmt::print("{:<{}}  {}  ({} runs{})\n", name, width, plan.config.title, plan.runs.size(),
               plan.config.is_long ? ", long" : "");
  }
  return kDone;
}

Status reproduce(const ReproduceArguments& arguments) {
  const std::string folder = experiments_folder();
  if (arguments.list) return list(folder);
  const std::vector<std::string> known = shipped(folder);
  std::vector<std::string> names = arguments.names;
  if (arguments.all) {
    if (!names.empty())
      throw UsageError("--all runs every study that is not long; leave the names out");
    for (const std::string& name : known) {
      if (!study::load_study(folder + "/" + name + ".json").is_long) names.push_back(name);
    }
  }
  if (names.empty()) names.emplace_back(kDefaultStudy);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(fmt::format("unknown study \"{}\"{}", name,
                                   config::name_hint(name, {known.begin(), known.end()})));
    }
  }
  Status worst = kDone;
  std::string index, unexpected;
  std::vector<std::string> ran;
  for (const std::string& name : names) {
    study::StudyOptions options = arguments.options;
    options.folder = arguments.out + "/" + name;
    if (names.size() > 1) fmt::print("=== {}\n", name);
    study::StudyStatus status;
    try {
      status = study::run_study(folder + "/" + name + ".json", options);
    } catch (const std::exception& e) {
      // One study that cannot be run does not take the others with it; ranks must not part ways.
      if (names.size() == 1 || options.ranks) throw;
      worst = kFailed;
      unexpected += fmt::format("could not be run: {}: {}\n", name, e.what());
      continue;
    }
    if (status == study::StudyStatus::interrupted) return kInterrupted;
    if (status == study::StudyStatus::unexpected) {
      worst = kFailed;
      unexpected += fmt::format("NOT as expected: {}\n", name);
    }
    ran.push_back(name);
    index = report::write_index(arguments.out, ran);
    if (names.size() > 1) fmt::print("\n");
  }
  if (names.size() > 1)
    fmt::print("=== all claims\n{}{}\n{}\n", report::claim_lines(arguments.out, ran), unexpected,
               index);
  return worst;
}

}  // namespace

Action reproduce_verb(Options& options) {
  const auto arguments = std::make_shared<ReproduceArguments>();
  options.add("NAME", arguments->names, "Studies, as --list names them (default: warmup)");
  options.add_flag("--list", arguments->list, "Print the shipped studies");
  options.add_flag("--all", arguments->all, "Run every study that is not long");
  options.add("--out", arguments->out,
              "Folder that gets a folder for each study (default: studies)");
  add_study_options(options, arguments->options);
  return [arguments] {
    return with_ranks([&](study::Ranks* ranks) {
      arguments->options.ranks = ranks;
      return reproduce(*arguments);
    });
  };
}

}  // namespace norma::cli
