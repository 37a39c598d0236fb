// Running a program and taking what it prints.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma::test {

struct ProcessResult {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

// Runs a line of shell.
inline ProcessResult run_shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int raw = std::system(("{ " + command + "\n} >" + out + " 2>" + err).c_str());
  const auto content = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  ProcessResult result;
  result.status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
  result.out = content(out);
  result.err = content(err);
  return result;
}

// Runs the built program with the arguments, which stand in the shell as they are.
inline ProcessResult run_norma(const std::string& arguments) {
  return run_shell(norma_program() + " " + arguments);
}

}  // namespace norma::test
