// LSTM and GRU: numbers from torch, norms inside the cell, masks, states carried on.
#include "layers/recurrent.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Scope kScope(1, TorchInit{}, DType::f64);

Signature sequence(std::int64_t length, std::int64_t width) {
  return {.shape = Shape{length, width}, .vocab = 0, .source = {}, .features_last = true};
}

Tensor wave(const Shape& shape, double phase) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(std::sin(0.7 * static_cast<double>(i) + phase));
  }
  return Tensor::from(shape, values, DType::f64);
}

// Calls f(config) for an lstm and a gru.
template <class F>
void for_both(const RecurrentOptions& options, F f) {
  f(LstmConfig{options});
  f(GruConfig{options});
}

// Fills the parameters with waves of the phases 2, 3, ... in the order of `names`.
void fill(Layer& layer, const std::vector<const char*>& names) {
  std::vector<NamedTensor> state = layer.state_dict();
  double phase = 1;
  const NoGrad off;
  for (const char* name : names) {
    ++phase;
    if (const NamedTensor* p = find_tensor(state, name)) {
      Tensor t = p->tensor;
      t.copy_(wave(t.shape(), phase));
    }
  }
}

void check_golden(const LayerPtr& layer, const std::vector<double>& output,
                  const std::vector<double>& gradient) {
  fill(*layer, {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "ih_norm.weight", "ih_norm.bias",
                "hh_norm.weight", "hh_norm.bias", "cell_norm.weight", "cell_norm.bias"});
  Tensor x = wave({2, 3, 2}, 1).set_requires_grad();
  const Tensor y = (*layer)(x);
  CHECK(compare(y.to_vector(), output, 1e-12) == "");
  if (gradient.empty()) return;
  backward(sum(y * y));
  CHECK(compare(x.grad().to_vector(), gradient, 1e-11) == "");
}

}  // namespace

// Numbers: torch 2.13.0, f64; torch.nn.LSTM and GRU without a norm, the formula with torch's
// layer_norm with one.
TEST_CASE("lstm: as torch, and with LayerNorm inside the cell", "[recurrent]") {
  LstmConfig config;
  config.hidden = 3;
  check_golden(
      config.build(kScope, sequence(3, 2)),
      {-0.06311209570095443, -0.0026194499412659457, 0.0036903227884460647, 0.003925002801701306,
       -0.013653964571763438, -0.017858556616078023, 0.004863742781089567, 0.04663076617982441,
       -0.39964639971147276, 0.004102549940028797, 0.04284595287201475, -0.3331227347484951,
       0.048173513081222065, 0.00938460854287255, -0.07371289244123785, 0.007571601814957888,
       0.004812595379669785, -0.04686262926867312},
      {});
  config.norm = NormConfig(LayerNormConfig{});
  check_golden(
      config.build(kScope, sequence(3, 2)),
      {-0.2581039671039139, -0.19473506913814184, 0.1286610666346347, -0.20804207724552176,
       -0.42805656456228036, 0.11199881644446305, -0.3679629002029282, -0.5249093695703798,
       0.4441169273308149, -0.2491734398523253, 0.017410973625914344, -0.5599528908661896,
       -0.5242343705220688, 0.04283602761834093, 0.0333823718916135, -0.19941911712144184,
       -0.38770062325424576, 0.12332317603051686},
      {0.0006565824478485388, -0.0005576380373246699, 0.0031782984674771624, -0.05173037460580778,
       -0.09356675477048731, 0.05856511146460916, -0.028846856323776343, 0.0681546041079121,
       -0.015769481263800116, 0.005775479810344666, 0.020490852617373538, -0.03057991559430756});
}

TEST_CASE("gru: as torch, and with LayerNorm inside the cell", "[recurrent]") {
  GruConfig config;
  config.hidden = 3;
  check_golden(
      config.build(kScope, sequence(3, 2)),
      {-0.1497614935350886, -0.006987087980964646, 0.11665988610976874, 0.051266097236716435,
       -0.008041118080638678, 0.11140145547316677, 0.5327293056124893, 0.3344721618969858,
       -0.03334809437496555, 0.3875203013369507, 0.32708333108875043, -0.17262400488972995,
       0.2617384457774524, 0.30907061558311344, -0.08920608196355817, 0.042309251790752345,
       0.27058230812109235, -0.020273886234243643},
      {});
  config.norm = NormConfig(LayerNormConfig{});
  check_golden(
      config.build(kScope, sequence(3, 2)),
      {0.35618794389966274, 0.10947242835007863, -0.2535734275841758, 0.6353211250677762,
       0.1480471714682987, -0.4388198103944735, -0.28629425797266467, -0.0293491824787903,
       0.12384938672108892, -0.31231787555733115, -0.35516841153597234, 0.1856873130244516,
       0.12366147493874038, 0.09174269649145095, 0.041026103817664625, 0.3913234829918591,
       0.1362290940307866, -0.4160405813124349},
      {0.06139117697602364, -0.05209200562978525, -0.009270700334924192, 0.15098181877613712,
       0.06574262537915274, -0.04115314512352714, -0.05529206553487602, 0.13064392725033094,
       0.1959966822827242, -0.07180061927512525, 0.0018236710101521003, -0.002717201692011506});
}

TEST_CASE("recurrent layers: names, shapes, initial values", "[recurrent]") {
  for_both({.hidden = 4, .norm = NormConfig(RmsNormConfig{})}, [](const auto& config) {
    const std::int64_t gates = config.type == std::string("lstm") ? 16 : 12;
    const LayerPtr layer = config.build(kScope, sequence(5, 3));
    CHECK(layer->output().shape == Shape{5, 4});
    std::string names;
    for (const NamedTensor& p : layer->state_dict()) {
      names += fmt::format("{} {} ", p.name, p.tensor.shape());
      const bool is_weight = p.name.rfind("weight", 0) == 0 || p.name.rfind("bias", 0) == 0;
      for (double v : p.tensor.to_vector()) CHECK((!is_weight || std::abs(v) <= 0.5));
    }
    CHECK(names == fmt::format("weight_ih ({0}, 3) weight_hh ({0}, 4) bias_ih ({0}) bias_hh ({0}) "
                               "ih_norm.weight ({0}) hh_norm.weight ({0}) {1}",
                               gates, gates == 16 ? "cell_norm.weight (4) " : ""));
  });
}

TEST_CASE("recurrent layers: gradients of first and second order, with a mask and with any norm",
          "[recurrent]") {
  std::vector<std::optional<NormConfig>> norms{std::nullopt, LayerNormConfig{}, BatchNormConfig{},
                                               GroupNormConfig{.groups = 2}};
  for (const auto& norm : norms) {
    for_both({.hidden = 4, .norm = norm}, [](const auto& config) {
      const LayerPtr layer = config.build(kScope, sequence(4, 3));
      Forward pass;
      pass.mask = Tensor::from({3, 4}, {1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1}, DType::u8);
      const Function f = [&](const std::vector<Tensor>& in) { return layer->forward(in[0], pass); };
      const Tensor x = random_tensor({3, 4, 3}, 2);
      CHECK(check_gradient(f, {x}) == "");
      CHECK(check_second_gradient(f, {x}) == "");
    });
  }
}

TEST_CASE("recurrent layers: a masked step leaves state and output as they were", "[recurrent]") {
  for_both({.hidden = 4, .norm = std::nullopt}, [](const auto& config) {
    const LayerPtr layer = config.build(kScope, sequence(5, 3));
    const Tensor x = random_tensor({1, 5, 3}, 2);
    Forward pass;
    pass.mask = Tensor::from({1, 5}, {1, 0, 1, 0, 0}, DType::u8);
    const Tensor y = layer->forward(x, pass);
    const auto at = [](const Tensor& t, std::int64_t step) { return slice(t, 1, step, step + 1); };
    const Tensor short_y = (*layer)(concatenate({at(x, 0), at(x, 2)}, 1));
    CHECK(same_bits(at(y, 0), at(short_y, 0)));
    CHECK(same_bits(at(y, 1), at(short_y, 0)));
    CHECK(same_bits(at(y, 2), at(short_y, 1)));
    CHECK(same_bits(at(y, 4), at(short_y, 1)));
    CHECK_FALSE(same_bits(at(y, 1), at((*layer)(x), 1)));
  });
}

TEST_CASE("recurrent layers: the state goes on from a cache, to the bit", "[recurrent]") {
  for_both({.hidden = 5, .norm = NormConfig(LayerNormConfig{})}, [](const auto& config) {
    const LayerPtr layer = config.build(kScope, sequence(6, 3));
    const Tensor x = random_tensor({2, 6, 3}, 2), whole = (*layer)(x);
    Cache cache;
    Forward pass;
    pass.cache = &cache;
    for (std::int64_t t = 0; t < 6; t += 2) {
      CHECK(same_bits(layer->forward(slice(x, 1, t, t + 2), pass), slice(whole, 1, t, t + 2)));
    }
  });
}

TEST_CASE("recurrent layers: with batch_norm, steps in which no sequence goes on", "[recurrent]") {
  for_both({.hidden = 4, .norm = NormConfig(BatchNormConfig{})}, [](const auto& config) {
    const LayerPtr layer = config.build(kScope, sequence(4, 3));
    const LayerPtr shorter = config.build(kScope, sequence(4, 3));
    const Tensor x = random_tensor({2, 4, 3}, 2);
    Forward pass;
    pass.mask = Tensor::from({2, 4}, {1, 1, 0, 0, 1, 1, 0, 0}, DType::u8);
    const Tensor y = layer->forward(x, pass), z = (*shorter)(slice(x, 1, 0, 2));
    CHECK(compare(slice(y, 1, 0, 2), z, 1e-12) == "");
    CHECK(same_bits(slice(y, 1, 3, 4), slice(y, 1, 1, 2)));
    for (const NamedTensor& b : layer->named_buffers()) {
      CHECK(compare(b.tensor, find_tensor(shorter->named_buffers(), b.name)->tensor, 1e-12) == "");
    }
  });
}

TEST_CASE("recurrent layers: what does not fit", "[recurrent]") {
  LstmConfig config;
  config.hidden = 2;
  NORMA_CHECK_ERROR(config.build(kScope, {.shape = Shape{4}}),
                    "lstm: expected sequences (T, C); got samples of shape (4)");
  NORMA_CHECK_ERROR((*config.build(kScope, sequence(4, 3)))(Tensor::zeros({1, 0, 3}, DType::f64)),
                    "lstm: expected sequences (B, T, C) of at least one step; got (1, 0, 3)");
  LstmConfig over_time = config;  // of which a step has one value
  over_time.norm = InstanceNormConfig{};
  NORMA_CHECK_ERROR(over_time.build(kScope, sequence(4, 3)),
                    "instance_norm: expected more than one value a channel");
  GruConfig gru;
  gru.hidden = 2;
  NORMA_CHECK_ERROR(gru.build(kScope, {.shape = Shape{4}, .vocab = 3}), "gru: expected numbers");
}

}  // namespace norma::test
