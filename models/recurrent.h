// Recurrent model: embeddings, LSTMs or GRUs one behind the other, and a head.
#pragma once

#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/recurrent.h"
#include "models/model.h"

namespace norma {

enum class CellKind : std::uint8_t { lstm, gru };
constexpr auto config_names(CellKind) { return std::to_array<std::string_view>({"lstm", "gru"}); }

struct RecurrentConfig {
  static constexpr const char* type = "recurrent";
  static constexpr const char* doc = "Embeddings, LSTMs or GRUs one behind the other, a head.";
  static constexpr const char* source = "Mikolov et al. 2010; Zaremba et al. 2014, arXiv 1409.2329";
  CellKind cell = CellKind::lstm;
  std::int64_t layers = 1;
  std::int64_t hidden = 0;
  std::optional<std::int64_t> width;
  std::optional<NormConfig> norm;
  double dropout = 0;
  bool tied = false;
  InitConfig init = TorchInit{};
  std::optional<std::int64_t> vocab;
  std::optional<std::int64_t> context;
  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
  [[nodiscard]] ModelPtr build(std::uint64_t seed, const Signature& in,
                               DType dtype = DType::f32) const;

  // Features of an embedding.
  [[nodiscard]] std::int64_t embedding_width() const { return width.value_or(hidden); }
};

// x = tokens[ids] -> dropout -> (cell -> dropout) for each layer -> head (tokens^T where tied,
// never with a bias). The state starts from 0 with every sequence.
// Shapes: ids (B, T) i64, pass.mask (B, T); result (B, T, vocab).
// Names: tokens, cells.I, head. The observer is told of the stream at "embedding" and "cells.I".
class RecurrentModel final : public Model {
 public:
  RecurrentModel(const RecurrentConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& ids, const Forward& pass) override;
  // Endlessly, unless a norm looks at other tokens.
  [[nodiscard]] Continues continues() const override;

 private:
  RecurrentConfig config_;
  Embedding tokens_;
  std::unique_ptr<Dropout> embedding_dropout_;
  std::vector<LayerPtr> cells_;
  std::vector<std::unique_ptr<Dropout>> dropouts_;  // behind each cell
  std::unique_ptr<Linear> head_;
};

}  // namespace norma
