#include "apps/study/job.h"

#include <signal.h>

#include "apps/training/run_folder.h"

namespace norma::study {

LocalJob::LocalJob(const std::vector<std::string>& arguments, const std::string& folder)
    : process_(arguments, {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}, folder + ".log"),
      tail_(RunFolder(folder).metrics_path()) {}

std::optional<int> LocalJob::poll(RunProgress& progress) {
  tail_.read(progress);
  return process_.poll();
}

void LocalJob::stop() { process_.send(SIGTERM); }

}  // namespace norma::study
