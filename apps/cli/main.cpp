#include <unistd.h>

#include <cstdlib>
#include <string>

#include "apps/cli/verb.h"

namespace {

// Note [Waiting threads]. Between two parallel loops GCC's OpenMP lets a thread wait in a loop, by
// default for milliseconds. With nothing else to run that costs nothing, but beside another program
// a waiting thread takes the core that the working one needs: a small network then trains twenty
// times slower than on one thread. A thousand rounds are as fast when the machine is free, and do
// no harm when it is not. The runtime reads this before main(), so the program starts itself once
// more.
void wait_shortly(char** argv) {
#if defined(_OPENMP) && !defined(__clang__)
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  ::setenv("GOMP_SPINCOUNT", "1000", 1);
  ::execv(path, argv);
  // Where that is not possible, it goes on as it is.
#else
  (void)argv;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  wait_shortly(argv);
  return norma::cli::run({argv + 1, argv + std::max(argc, 1)});
}
