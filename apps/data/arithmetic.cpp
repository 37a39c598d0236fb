#include "apps/data/arithmetic.h"

namespace norma {
namespace {

// 18 digits fit into 64 bits, and a question is a pair of numbers.
constexpr int kMostDigits = 9;
constexpr std::int64_t kPlus = 10;

// `value` in decimal, the highest digit first, with zeros in front.
void write_digits(std::int64_t value, std::span<std::int64_t> digits) {
  for (std::size_t i = digits.size(); i-- > 0; value /= 10) digits[i] = value % 10;
}

class Addition final : public SequenceTask {
 public:
  Addition(const AdditionConfig& config, const DataContext& context)
      : SequenceTask(
            AdditionConfig::type, config,
            {.vocab = kPlus + 1, .source = 2 * config.digits + 1, .answer = config.digits + 1},
            context) {
    for (std::int64_t i = 0; i < config.digits; ++i) numbers_ *= 10;
    check_questions(numbers_ * numbers_);
  }

 protected:
  void make_sample(Part part, RandomStream& stream, std::vector<std::int64_t>& source,
                   std::span<std::int64_t> answer) const override {
    const std::int64_t question = draw_question(part, stream, numbers_ * numbers_);
    const std::int64_t a = question / numbers_, b = question % numbers_;
    const std::size_t digits = answer.size() - 1;
    write_digits(a, std::span(source).first(digits));
    source[digits] = kPlus;
    write_digits(b, std::span(source).last(digits));
    write_digits(a + b, answer);
  }

 private:
  std::int64_t numbers_ = 1;  // numbers of so many digits
};

// b^-1 modulo a prime p: b^(p-2) (Fermat).
std::int64_t inverse(std::int64_t b, std::int64_t p) {
  std::int64_t power = 1;
  for (std::int64_t e = p - 2; e > 0; e /= 2, b = b * b % p) {
    if (e % 2 == 1) power = power * b % p;
  }
  return power;
}

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

class Modular final : public SequenceTask {
 public:
  Modular(const ModularConfig& config, const DataContext& context)
      : SequenceTask(ModularConfig::type, config,
                     {.vocab = config.modulus, .source = 2, .answer = 1}, context),
        modulus_(config.modulus),
        operation_(config.operation) {
    check_questions(questions());
  }

 protected:
  void make_sample(Part part, RandomStream& stream, std::vector<std::int64_t>& source,
                   std::span<std::int64_t> answer) const override {
    const std::int64_t question = draw_question(part, stream, questions());
    source[0] = question % modulus_;
    source[1] = question / modulus_ + (operation_ == ModularOperation::divide ? 1 : 0);
    answer[0] = apply(source[0], source[1]);
  }

 private:
  [[nodiscard]] std::int64_t questions() const {
    return modulus_ * (operation_ == ModularOperation::divide ? modulus_ - 1 : modulus_);
  }
  [[nodiscard]] std::int64_t apply(std::int64_t a, std::int64_t b) const {
    switch (operation_) {
      case ModularOperation::add:
        return (a + b) % modulus_;
      case ModularOperation::subtract:
        return (a - b + modulus_) % modulus_;
      case ModularOperation::multiply:
        return a * b % modulus_;
      default:
        return a * inverse(b, modulus_) % modulus_;
    }
  }

  std::int64_t modulus_;
  ModularOperation operation_;
};

}  // namespace

config::Fields AdditionConfig::fields() {
  using namespace config;
  return Fields{field("digits", &AdditionConfig::digits, "Digits of each number.",
                      between(1, kMostDigits))} +
         sample_fields();
}

std::unique_ptr<DataSet> AdditionConfig::make(const DataContext& run) const {
  return std::make_unique<Addition>(*this, run);
}

config::Fields ModularConfig::fields() {
  using namespace config;
  return Fields{field("modulus", &ModularConfig::modulus, "The modulus p; ids are 0 to p - 1.",
                      between(2, 1e6)),
                field("operation", &ModularConfig::operation, "What is done with the two.")} +
         sample_fields();
}

void ModularConfig::check(config::Problems& problems, const std::string& path) const {
  if (operation == ModularOperation::divide && !is_prime(modulus)) {
    problems.add(config::join(path, "modulus"), "division needs a prime; got {}", modulus);
  }
}

std::unique_ptr<DataSet> ModularConfig::make(const DataContext& run) const {
  return std::make_unique<Modular>(*this, run);
}

}  // namespace norma
