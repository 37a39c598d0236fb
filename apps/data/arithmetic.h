// Tasks of arithmetic: addition of decimal numbers, operations modulo a prime.
#pragma once

#include <memory>

#include "apps/data/sequence_task.h"

namespace norma {

// The source is two numbers of `digits` digits with a plus (id 10) between; the answer has digits +
// 1 digits. Both are written from the highest digit, with zeros in front. Pairs of numbers that
// validation asks never stand in training.
struct AdditionConfig : TaskOptions {
  static constexpr const char* type = "addition";
  static constexpr const char* doc = "Two numbers; the answer is their sum, digit by digit.";
  static constexpr const char* source = "Nogueira et al. 2021, arXiv 2102.13019";
  std::int64_t digits = 3;

  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

enum class ModularOperation : std::uint8_t { add, subtract, multiply, divide };
constexpr auto config_names(ModularOperation) {
  return std::to_array<std::string_view>({"add", "subtract", "multiply", "divide"});
}

// The source is a and b, the answer the one id (a op b) mod p; to divide, p must be a prime, and b
// is not 0. Pairs that validation asks never stand in training, so that a model that answers them
// has found the rule.
struct ModularConfig : TaskOptions {
  static constexpr const char* type = "modular";
  static constexpr const char* doc = "Two numbers a and b; the answer is a op b modulo `modulus`.";
  static constexpr const char* source = "Power et al. 2022, arXiv 2201.02177";
  std::int64_t modulus = 97;
  ModularOperation operation = ModularOperation::add;

  [[nodiscard]] static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
