#include "apps/bench/process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/error.h"

extern char** environ;

namespace norma::bench {

std::string run_process(const std::vector<std::string>& arguments) {
  require(!arguments.empty(), "process: expected a program to run");
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);

  int ends[2];
  require(::pipe(ends) == 0, "process: cannot make a pipe: {}", std::strerror(errno));
  std::fflush(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int status = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (status != 0) {
    ::close(ends[0]);
    throw Error::format("process: cannot start {}: {}", arguments[0], std::strerror(status));
  }

  std::string output;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n > 0) {
      output.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  ::close(ends[0]);
  int end = 0;
  while (::waitpid(child, &end, 0) < 0 && errno == EINTR) {
  }
  require(WIFEXITED(end), "process: {} was ended by signal {}", arguments[0], WTERMSIG(end));
  require(WEXITSTATUS(end) == 0, "process: {} ended with status {}", arguments[0],
          WEXITSTATUS(end));
  return output;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace norma::bench
