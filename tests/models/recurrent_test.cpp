// The recurrent model: names, ties, what a token sees.
#include "models/recurrent.h"

#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Signature kIds{.shape = Shape{6}, .vocab = 11};

RecurrentConfig small(CellKind cell) {
  RecurrentConfig c;
  c.cell = cell;
  c.layers = 2;
  c.hidden = 8;
  return c;
}

Tensor ids(const std::vector<std::int64_t>& values) {
  return Tensor::from_ids({static_cast<std::int64_t>(values.size()) / 6, 6}, values);
}

TEST_CASE("recurrent: names, shapes, a tied head", "[recurrent]") {
  RecurrentConfig config = small(CellKind::gru);
  config.width = 5;
  const auto names = [](const RecurrentConfig& c) {
    std::string text;
    for (const NamedParameter& p : c.build(0, kIds)->named_parameters()) {
      text += fmt::format("{} {} ", p.name, p.tensor.shape());
    }
    return text;
  };
  CHECK(names(config) ==
        "tokens.weight (11, 5) cells.0.weight_ih (24, 5) cells.0.weight_hh (24, 8) cells.0.bias_ih "
        "(24) cells.0.bias_hh (24) cells.1.weight_ih (24, 8) cells.1.weight_hh (24, 8) "
        "cells.1.bias_ih (24) cells.1.bias_hh (24) head.weight (11, 8) ");
  const std::vector<std::int64_t> some{1, 2, 3, 4, 5, 6};
  CHECK((*config.build(0, kIds))(ids(some)).shape() == Shape{1, 6, 11});
  config.tied = true;
  config::Problems problems;
  config.check(problems, "model");
  NORMA_CHECK_ERROR(problems.raise(""),
                    "model.tied: the head reads 8 features, a row of tokens has 5");
  config.width = std::nullopt;
  CHECK(names(config).find("head") == std::string::npos);
  CHECK((*config.build(0, kIds))(ids(some)).shape() == Shape{1, 6, 11});
}

TEST_CASE("recurrent: a token sees those before it, and no other sample", "[recurrent]") {
  for (const CellKind cell : {CellKind::lstm, CellKind::gru}) {
    const ModelPtr model = small(cell).build(0, kIds);
    const auto run = [&](const std::vector<std::int64_t>& values) {
      return (*model)(ids(values)).to_vector();
    };
    const std::vector<double> y = run({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
    const std::vector<double> moved = run({1, 2, 3, 9, 5, 6, 1, 2, 3, 4, 5, 6});
    for (std::size_t t = 0; t < 12; ++t) {
      const auto at = static_cast<std::ptrdiff_t>(11 * t);
      const bool same = std::equal(y.begin() + at, y.begin() + at + 11, moved.begin() + at);
      CHECK(same == (t < 3 || t >= 6));
    }
  }
}

TEST_CASE("recurrent: what generation may carry on", "[recurrent]") {
  RecurrentConfig config = small(CellKind::lstm);
  CHECK(config.build(0, kIds)->continues() == Continues::endlessly);
  config.norm = NormConfig(LayerNormConfig{});
  CHECK(config.build(0, kIds)->continues() == Continues::endlessly);
  config.norm = NormConfig(BatchNormConfig{{.track = false}});
  CHECK(config.build(0, kIds)->continues() == Continues::no);
}

TEST_CASE("recurrent: data that do not fit", "[recurrent]") {
  RecurrentConfig config = small(CellKind::lstm);
  NORMA_CHECK_ERROR(
      config.build(0, {.shape = Shape{4}}),
      "recurrent: expected sequences of ids; got samples of shape (4) that hold numbers");
  config.vocab = 4;
  NORMA_CHECK_ERROR(config.build(0, kIds), "recurrent: `vocab` is 4; the data has 11 ids");
  config.vocab = 20;
  CHECK(config.build(0, kIds)->output().shape == Shape{6, 20});
  config.context = 5;
  NORMA_CHECK_ERROR(config.build(0, kIds),
                    "recurrent: `context` is 5; the data's sequences have 6 tokens");
}

}  // namespace
}  // namespace norma::test
