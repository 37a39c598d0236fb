#include "apps/training/host.h"

#include <cblas.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/instructions.h"
#include "core/parallel.h"

namespace norma {
namespace {

// The processor's own name, empty where the system does not tell it.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  }
  return "";
}

}  // namespace

config::Json versions_json() {
  config::Json j;
  j["norma"] = NORMA_VERSION;
  j["compiler"] = __VERSION__;
  j["blas"] = openblas_get_config();
  return j;
}

config::Json host_json() {
  config::Json j;
  j["cpu"] = cpu_name();
  j["cores"] = std::thread::hardware_concurrency();
  j["threads"] = num_threads();
  j["instructions"] = instruction_set();
  return j;
}

}  // namespace norma
