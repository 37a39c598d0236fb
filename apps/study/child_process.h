// A program that runs beside this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace norma::study {

class ChildProcess {
 public:
  // Starts `arguments[0]` with what follows, and with `environment` (NAME=VALUE) over this
  // process's own. What it prints goes to `log`, anew. It is in a process group of its own, so that
  // Ctrl-C at the terminal reaches this process alone, which then decides; and it is killed when
  // this process dies, however it dies. Throws Error.
  ChildProcess(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const std::string& log);
  // Kills it if it still runs, and waits for its end.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ChildProcess(const ChildProcess&) = delete;

  // Its exit status once it has ended, else nothing; a signal N that ended it is -N.
  [[nodiscard]] std::optional<int> poll();
  // Waits for its end; its exit status, as poll().
  int wait();
  // Sends a signal, if it still runs.
  void send(int signal);

 private:
  std::optional<int> reap(int options);

  pid_t process_ = -1;
  std::optional<int> status_;
};

// The path of the running program. Throws Error.
[[nodiscard]] std::string this_program();
// 16 hexadecimal digits over the program's content and the instruction set in use.
[[nodiscard]] std::string fingerprint(const std::string& program);

}  // namespace norma::study
