// Groups, state, and what must not move. Faults that others had are named by their threads.
#include "optim/optimizer.h"

#include "core/parallel.h"
#include "core/random.h"
#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::give_gradient;
using test::optimizer_config;
using test::parameter;
using test::same_bits;

const char* const kAll[] = {
    R"({"type":"sgd","lr":0.1,"momentum":0.9,"weight_decay":0.1})",
    R"({"type":"adam","lr":0.1,"weight_decay":0.1})",
    R"({"type":"adamw","lr":0.1,"amsgrad":true,"weight_decay":0.1})",
    R"({"type":"adamw","lr":0.1,"v_init":"first_gradient","weight_decay":0.1})",
    R"({"type":"radam","lr":0.1,"weight_decay":0.1})",
    R"({"type":"rmsprop","lr":0.1,"momentum":0.5,"centered":true,"weight_decay":0.1})",
    R"({"type":"adagrad","lr":0.1,"weight_decay":0.1})",
    R"({"type":"adafactor","lr":0.1,"weight_decay":0.1})",
    R"({"type":"muon","lr":0.1,"weight_decay":0.1})",
    R"({"type":"lion","lr":0.1,"weight_decay":0.1})",
};

// Random weights; the same each time.
std::vector<NamedParameter> make_model(DType dtype = DType::f32) {
  std::vector<NamedParameter> model;
  const std::vector<std::pair<const char*, Shape>> shapes = {
      {"a.weight", {5, 7}}, {"a.bias", {5}}, {"norm.weight", {5}}, {"b.weight", {3, 5}}};
  for (const auto& [name, shape] : shapes) {
    Tensor t = Tensor::empty(shape, dtype);
    fill_normal(t, 0, 1, random_key(1, name));
    t.set_requires_grad();
    model.push_back({name, t});
  }
  return model;
}

void random_gradients(const std::vector<NamedParameter>& model, int step) {
  for (const NamedParameter& p : model) {
    Tensor g = Tensor::empty(p.tensor.shape(), p.tensor.dtype());
    fill_normal(g, 0, 1, random_key(static_cast<std::uint64_t>(step), "gradient/" + p.name));
    Tensor(p.tensor).set_grad(g);
  }
}

std::vector<NamedTensor> copies(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const NamedTensor& t : tensors) result.push_back({t.name, t.tensor.clone()});
  return result;
}

void check_same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(a[i].name == b[i].name);
    CHECK(same_bits(a[i].tensor, b[i].tensor));
  }
}

TEST_CASE("a resumed optimizer goes on in the same bits (OpenNMT/OpenNMT-py#617)", "[optim]") {
  for (const char* json : kAll) {
    INFO(json);
    const OptimizerConfig config = optimizer_config(json);
    const auto straight = make_model();
    const OptimizerPtr first = make_optimizer(config, straight);
    for (int t = 0; t < 5; ++t) random_gradients(straight, t), first->step(0.1);
    const auto saved_weights = copies(straight);
    const auto saved_state = copies(first->state());
    for (int t = 5; t < 10; ++t) random_gradients(straight, t), first->step(0.1);

    for (const bool with_state : {true, false}) {
      const auto resumed = make_model();
      const OptimizerPtr second = make_optimizer(config, resumed);
      for (std::size_t i = 0; i < resumed.size(); ++i) {
        const NoGrad no_grad;
        Tensor(resumed[i].tensor).copy_(saved_weights[i].tensor);
      }
      if (with_state) second->load_state(saved_state);
      for (int t = 5; t < 10; ++t) random_gradients(resumed, t), second->step(0.1);
      if (with_state) {
        check_same(straight, resumed);
        check_same(first->state(), second->state());
        CHECK(second->steps(0) == 10);
      } else {
        // The test can fail: without its state the optimizer ends elsewhere.
        CHECK(!same_bits(straight[0].tensor, resumed[0].tensor));
      }
    }
  }
}

TEST_CASE("a state that does not fit is refused, and nothing changes", "[optim]") {
  const auto model = make_model();
  const OptimizerPtr adam = make_optimizer(optimizer_config(R"("adam")"), model);
  const OptimizerPtr sgd = make_optimizer(optimizer_config(R"("sgd")"), make_model());
  random_gradients(model, 0);
  adam->step(0.1);
  const auto before = copies(adam->state());
  NORMA_CHECK_ERROR(adam->load_state(sgd->state()), "the state lacks 'first_moment.a.weight'");
  NORMA_CHECK_ERROR(sgd->load_state(adam->state()), "which this optimizer does not know");
  auto wrong = copies(before);
  for (NamedTensor& t : wrong) t.tensor.fill_(0);
  wrong.back().tensor = Tensor::zeros({2}, DType::i64);
  NORMA_CHECK_ERROR(adam->load_state(wrong), "'step.b.weight' must be i64 (); got i64 (2)");
  check_same(adam->state(), before);
}

TEST_CASE("a parameter without a gradient stays to the bit (pytorch/pytorch#22035)", "[optim]") {
  for (const char* json : kAll) {
    INFO(json);
    const auto model = make_model();
    const OptimizerPtr optimizer = make_optimizer(optimizer_config(json), model);
    for (int t = 0; t < 3; ++t) random_gradients(model, t), optimizer->step(0.1);
    optimizer->clear_gradients();
    const auto before = copies(model);
    const auto state = copies(optimizer->state());
    // Only a.weight takes part.
    give_gradient(model[0].tensor, std::vector<double>(35, 0.5));
    optimizer->step(0.1);
    CHECK(!same_bits(model[0].tensor, before[0].tensor));
    CHECK(optimizer->steps(0) == 4);
    for (std::size_t i = 1; i < model.size(); ++i) {
      INFO(model[i].name);
      CHECK(same_bits(model[i].tensor, before[i].tensor));
      CHECK(optimizer->steps(static_cast<std::int64_t>(i)) == 3);
    }
    for (const NamedTensor& s : optimizer->state()) {
      if (test::contains(s.name, "a.weight")) continue;
      INFO(s.name);
      CHECK(same_bits(s.tensor, find_tensor(state, s.name)->tensor));
    }
    // A gradient of zeros is another thing: momentum and decay move the weight.
    optimizer->clear_gradients();
    give_gradient(model[3].tensor, std::vector<double>(15, 0));
    optimizer->step(0.1);
    CHECK(!same_bits(model[3].tensor, before[3].tensor));
    CHECK(optimizer->steps(3) == 4);
  }
}

TEST_CASE("weight decay acts on matrices alone (karpathy/minGPT#23)", "[optim]") {
  const auto model = make_model();
  const auto before = copies(model);
  const OptimizerPtr adamw =
      make_optimizer(optimizer_config(R"({"type":"adamw","weight_decay":0.1})"), model);
  for (const NamedParameter& p : model) Tensor(p.tensor).set_grad(Tensor::zeros(p.tensor.shape()));
  adamw->step(0.1);
  for (std::size_t i = 0; i < model.size(); ++i) {
    INFO(model[i].name);
    const auto was = before[i].tensor.to_vector(), is = model[i].tensor.to_vector();
    for (std::size_t k = 0; k < is.size(); ++k) {
      const double factor = model[i].tensor.rank() > 1 ? 0.99 : 1;
      CHECK(is[k] == static_cast<float>(static_cast<float>(was[k]) * static_cast<float>(factor)));
    }
  }
}

TEST_CASE("groups set rate, decay and freezing", "[optim]") {
  const auto model = make_model(DType::f64);
  const auto before = copies(model);
  const OptimizerPtr sgd = make_optimizer(
      optimizer_config(R"({"type":"sgd","weight_decay":0.5,"no_decay":["norm.*"],"groups":[
        {"match":"a.weight","lr_factor":2,"weight_decay":0.25},{"match":"a.*","frozen":true}]})"),
      model);
  CHECK(!model[1].tensor.requires_grad());
  CHECK(model[0].tensor.requires_grad());
  for (const NamedParameter& p : model) {
    Tensor(p.tensor).set_grad(Tensor::ones(p.tensor.shape(), DType::f64));
  }
  sgd->step(0.1);
  const auto value = [](const auto& m, std::size_t i) { return m[i].tensor.to_vector()[0]; };
  const auto moved = [&](std::size_t i) { return value(model, i) - value(before, i); };
  CHECK(moved(0) == Approx(-0.2 * (1 + 0.25 * value(before, 0))));
  CHECK(moved(1) == 0);
  CHECK(moved(2) == Approx(-0.1));
  CHECK(moved(3) == Approx(-0.1 * (1 + 0.5 * value(before, 3))));
  CHECK(sgd->setting(0).group == 0);
  CHECK(sgd->setting(1).group == 1);
  CHECK(sgd->setting(3).group == -1);
}

TEST_CASE("a glob that matches nothing is an error", "[optim]") {
  const auto make = [](const char* json) {
    return make_optimizer(optimizer_config(json), make_model());
  };
  NORMA_CHECK_ERROR(make(R"({"type":"sgd","no_decay":["*.gain"]})"),
                    "optimizer.no_decay: '*.gain' matches no parameter; the names are a.weight");
  NORMA_CHECK_ERROR(make(R"({"type":"sgd","groups":[{"match":"head.*"}]})"),
                    "optimizer.groups.0: 'head.*' matches no parameter");
  NORMA_CHECK_ERROR(make(R"({"type":"sgd","groups":[{"match":"a.*"},{"match":"a.bias"}]})"),
                    "optimizer.groups.1: all that 'a.bias' matches belongs to earlier groups");
  NORMA_CHECK_ERROR(make(R"({"type":"sgd","groups":[{"match":"*.bias","weight_decay":0.1}]})"),
                    "acts on nothing");
}

TEST_CASE("an update gives the same bits at any number of threads", "[optim][threads]") {
  const int before = num_threads();
  for (const char* json : kAll) {
    INFO(json);
    std::vector<std::vector<NamedTensor>> results;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      Tensor w = Tensor::empty({413, 401});
      fill_normal(w, 0, 1, random_key(3, "w"));
      w.set_requires_grad();
      Tensor b = parameter({3}, {1, 2, 3});
      const std::vector<NamedParameter> model = {{"w", w}, {"b", b}};
      const OptimizerPtr optimizer = make_optimizer(optimizer_config(json), model);
      for (int t = 0; t < 3; ++t) random_gradients(model, t), optimizer->step(0.1);
      results.push_back(copies(model));
    }
    check_same(results[0], results[1]);
    check_same(results[0], results[2]);
  }
  set_num_threads(before);
}

TEST_CASE("an update tells the graph that the weights changed", "[optim]") {
  const auto model = make_model();
  const OptimizerPtr sgd = make_optimizer(optimizer_config(R"("sgd")"), model);
  random_gradients(model, 0);
  Tensor(model[1].tensor).clear_grad();
  const auto version = [&](std::size_t i) { return model[i].tensor.version(); };
  const auto with = version(0), without = version(1);
  sgd->step(0.1);
  CHECK(version(0) > with);
  CHECK(version(1) == without);
}

}  // namespace
}  // namespace norma
