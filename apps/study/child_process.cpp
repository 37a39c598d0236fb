#include "apps/study/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/instructions.h"

namespace norma::study {
namespace {

constexpr int kNoProgram = 127;  // as the shell has it

// Environment entries of this process, but for those that `changes` sets.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool changed = false;
    for (const std::string& change : changes) changed = changed || change.starts_with(name);
    if (!changed) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment, const std::string& log) {
  // Everything that allocates comes before the fork: another thread may hold the allocator's lock.
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = environment_with(environment);
  const std::vector<char*> argv = pointers(argument_texts);
  const std::vector<char*> envp = pointers(environment_texts);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  require(output >= 0, "{}: cannot be written: {}", log, std::strerror(errno));
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = ::getpid();

  process_ = ::fork();
  if (process_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kNoProgram);  // it died before it was asked about
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(kNoProgram);
  }
  const int error = errno;
  ::close(output);
  ::close(nothing);
  require(process_ > 0, "no process could be started: {}", std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (process_ <= 0 || status_) return;
  ::kill(process_, SIGKILL);
  wait();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(other.process_), status_(other.status_) {
  other.process_ = -1;
}

std::optional<int> ChildProcess::poll() { return reap(WNOHANG); }

int ChildProcess::wait() {
  while (!reap(0)) {
  }
  return *status_;
}

std::optional<int> ChildProcess::reap(int options) {
  if (status_) return status_;
  int status = 0;
  const pid_t ended = ::waitpid(process_, &status, options);
  if (ended < 0 && errno == ECHILD) return status_ = -SIGKILL;  // somebody else has waited for it
  if (ended != process_) return std::nullopt;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return status_;
}

void ChildProcess::send(int signal) {
  if (process_ > 0 && !status_) ::kill(process_, signal);
}

std::string this_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  require(!error, "/proc/self/exe: cannot be read: {}", error.message());
  return path.string();
}

std::string fingerprint(const std::string& program) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char c : read_file(program) + instruction_set()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace norma::study
