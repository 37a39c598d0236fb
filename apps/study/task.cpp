#include "apps/study/task.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/study/sharing.h"
#include "apps/training/checkpoint.h"
#include "apps/training/progress.h"
#include "apps/training/run_folder.h"
#include "core/file.h"

namespace norma::study {
namespace fs = std::filesystem;
namespace {

bool is_of_program(const Task& task, const std::string& fingerprint) {
  const std::string path = task.folder + ".program";
  return fs::exists(path) && read_file(path) == fingerprint;
}

// Puts the checkpoints and the records of the prefix into the task's folder, as if it had come so
// far itself. config.json comes last: without it the folder is no run.
void adopt(const Task& task) {
  const RunFolder from(task.before->folder), to(task.folder);
  fs::create_directories(to.checkpoints_path());
  for (const std::int64_t step : from.checkpoint_steps()) {
    const Checkpoint checkpoint = read_checkpoint(from, step);
    write_checkpoint(to.checkpoint_path(step), checkpoint.state, checkpoint.files,
                     task.run->config);
  }
  write_file(to.metrics_path(), read_file(from.metrics_path()));
  write_file(to.config_path(), task.run->config.dump(2) + "\n");
}

}  // namespace

std::string run_folder(const std::string& study_folder, const PlannedRun& run) {
  return study_folder + "/runs/" + run.id;
}

std::string prefixes_folder(const std::string& study_folder) { return study_folder + "/prefixes"; }

std::list<Task> make_tasks(const Plan& plan, const std::vector<std::size_t>& runs,
                           const std::string& folder, bool share, const std::string& fingerprint) {
  const auto run_task = [&](std::size_t i) {
    const PlannedRun& run = plan.runs[i];
    return Task{.run = &run,
                .name = fmt::format("{}, seed {}", plan.arms[run.arm].name, plan.seeds[run.seed]),
                .folder = run_folder(folder, run),
                .steps = run.steps};
  };
  const Sharing sharing = share ? share_prefixes(plan) : Sharing{};
  const auto prefix_task = [&](std::size_t i) {
    const Prefix& prefix = sharing.prefixes[i];
    return Task{.run = &plan.runs[prefix.run],
                .name = fmt::format("beginning of {} runs, seed {}", prefix.runs,
                                    plan.seeds[plan.runs[prefix.run].seed]),
                .folder = fmt::format("{}/{}", prefixes_folder(folder), prefix.id),
                .steps = prefix.steps,
                .until = prefix.steps};
  };
  // The prefix of a run that has not begun.
  const auto prefix_of = [&](std::size_t i) -> std::optional<std::size_t> {
    return share && !can_resume(run_task(i), fingerprint) ? sharing.of_run[i] : std::nullopt;
  };
  // How many need each prefix: runs, and longer prefixes that are still to be trained.
  std::vector<std::size_t> needed(sharing.prefixes.size(), 0);
  std::vector<bool> trained(sharing.prefixes.size(), false);
  for (const std::size_t i : runs) {
    if (const auto prefix = prefix_of(i)) ++needed[*prefix];
  }
  for (std::size_t p = sharing.prefixes.size(); p-- > 0;) {
    trained[p] = needed[p] > 0 && is_trained(prefix_task(p), fingerprint);
    const auto before = sharing.prefixes[p].before;
    if (!trained[p] && before && needed[p] > 0) ++needed[*before];
  }
  std::list<Task> tasks;
  std::vector<const Task*> made(sharing.prefixes.size(), nullptr);
  // The task of the prefix, or of the longest one before it that is worth it.
  const auto task_of = [&](const auto& self, std::optional<std::size_t> prefix) -> const Task* {
    if (!prefix) return nullptr;
    const auto before = sharing.prefixes[*prefix].before;
    if (!trained[*prefix] && needed[*prefix] < 2) return self(self, before);
    if (!made[*prefix]) {
      Task task = prefix_task(*prefix);
      task.done = trained[*prefix];
      task.before = task.done ? nullptr : self(self, before);
      tasks.push_back(std::move(task));
      made[*prefix] = &tasks.back();
    }
    return made[*prefix];
  };
  for (const std::size_t i : runs) {
    Task task = run_task(i);
    task.before = task_of(task_of, prefix_of(i));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

bool can_resume(const Task& task, const std::string& fingerprint) {
  const RunFolder folder(task.folder);
  return is_of_program(task, fingerprint) && !folder.checkpoint_steps().empty() &&
         fs::exists(folder.config_path());
}

bool is_trained(const Task& prefix, const std::string& fingerprint) {
  if (!is_of_program(prefix, fingerprint)) return false;
  try {
    (void)read_checkpoint(RunFolder(prefix.folder), prefix.until);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<std::string> prepare(const Task& task, bool resume, const std::string& program,
                                 const std::string& fingerprint) {
  if (!resume) {
    fs::remove_all(task.folder);
    fs::create_directories(task.folder);
    resume = task.before && is_trained(*task.before, fingerprint);
    if (resume) adopt(task);
  }
  const std::string config = task.folder + ".json";
  write_file(config, task.run->config.dump(2) + "\n");
  write_file(task.folder + ".program", fingerprint);
  std::vector<std::string> arguments = {program,     "train",     config, "--out",
                                        task.folder, "--threads", "1",    "--quiet"};
  if (resume) arguments.emplace_back("--resume");
  if (task.is_prefix()) {
    arguments.emplace_back("--until");
    arguments.push_back(std::to_string(task.until));
  }
  return arguments;
}

std::vector<std::string> warnings_of(const Task& task) {
  std::vector<std::string> warnings;
  std::ifstream log(task.folder + ".log");
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with(kWarning)) warnings.push_back(line.substr(kWarning.size()));
  }
  return warnings;
}

void leave_as_configured(const Task& task) {
  if (task.run->config.at("train").at("keep") != 0) return;
  std::error_code ignored;
  fs::remove_all(RunFolder(task.folder).checkpoints_path(), ignored);
}

}  // namespace norma::study
