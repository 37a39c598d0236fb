#include "core/ops/norm_rows.h"

#include <cmath>
#include <limits>

#include "core/ops/cast.h"
#include "core/ops/norm_channels.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The formula of Note [One formula], naively.
std::vector<double> naive(const std::vector<Tensor>& in, const NormRowsOptions& o) {
  const auto x = in[0].to_vector();
  const std::int64_t per_row = o.cols / o.space;
  const auto n = static_cast<std::int64_t>(std::ceil(static_cast<double>(o.cols) * o.p));
  std::vector<double> y(x.size());
  for (std::int64_t r = 0; r < in[0].numel() / o.cols; ++r) {
    double mean = 0, var = 0;
    for (std::int64_t i = 0; i < n && o.centre; ++i) mean += x[at(r * o.cols + i)] / double(n);
    for (std::int64_t i = 0; i < n; ++i)
      var += std::pow(x[at(r * o.cols + i)] - mean, 2) / double(n);
    for (std::int64_t i = 0; i < o.cols; ++i) {
      const std::int64_t c = r % o.groups * per_row + i / o.space;
      const double z = (x[at(r * o.cols + i)] - mean) / std::sqrt(var + o.eps);
      const double gain = in.size() > 1 ? in[1].to_vector()[at(c)] + (o.unit_offset ? 1 : 0) : 1;
      y[at(r * o.cols + i)] = z * gain + (in.size() > 2 ? in[2].to_vector()[at(c)] : 0);
    }
  }
  return y;
}

Tensor input(const std::vector<Tensor>& in, std::size_t i) {
  return i < in.size() ? in[i] : Tensor{};
}

NORMA_OP_CASE(norm_rows, layer_norm) {
  return {.run = [](const auto& in) { return layer_norm(in[0], input(in, 1), input(in, 2)); },
          .reference = [](const auto& in) { return naive(in, {.cols = in[0].shape()[-1]}); },
          .samples = {{{2, 3}, {3}, {3}},
                      {{2, 3, 17}, {17}, {17}},
                      {{3, 7}},
                      {{5, 33}, {33}},
                      {{1, 5000}, {5000}, {5000}},
                      {{0, 4}, {4}, {4}},
                      {{600, 70}, {70}, {70}}},
          .tolerance_f32 = 4e-6,
          .errors = {{[] {
                        (void)layer_norm(Tensor::zeros({2, 3}), Tensor::ones({2}), {});
                      },
                      "layer_norm: weight must have shape (3) to fit x (2, 3); got (2)"},
                     {[] {
                        (void)layer_norm(Tensor::zeros({2, 3}), {}, {}, {.axes = 3});
                      },
                      "layer_norm: expected 1 to 2 axes of x (2, 3); got 3"},
                     {[] {
                        (void)layer_norm(Tensor::zeros({2, 3}, DType::i32), {}, {});
                      },
                      "layer_norm: expected a floating x; got i32"},
                     {[] {
                        (void)layer_norm(Tensor::zeros({2, 3}), Tensor::ones({3}, DType::f64), {});
                      },
                      "layer_norm: weight and bias must have the type of x, f32; got f64"}}};
}

NORMA_OP_CASE(norm_rows, rms_norm) {
  return {
      .run = [](const auto& in) { return rms_norm(in[0], input(in, 1)); },
      .reference =
          [](const auto& in) {
            return naive(in, {.cols = in[0].shape()[-1], .centre = false, .eps = 1e-6});
          },
      .samples = {{{2, 3}, {3}}, {{2, 2, 19}, {19}}, {{4, 64}}, {{2, 1}, {1}}, {{700, 65}, {65}}},
      .tolerance_f32 = 4e-6,
      .errors = {{[] {
                    (void)rms_norm(Tensor::zeros({2, 3}), {}, {.p = 0});
                  },
                  "rms_norm: p must lie in (0, 1]; got 0"},
                 {[] {
                    (void)rms_norm(Tensor::zeros({2, 3}), Tensor::ones({4}));
                  },
                  "rms_norm: weight must have shape (3) to fit x (2, 3); got (4)"}}};
}

NORMA_OP_CASE(norm_rows, rms_norm_partial) {
  return {.run =
              [](const auto& in) {
                return rms_norm(in[0], in[1], {.eps = 1e-3, .unit_offset = true, .p = 0.3});
              },
          .reference =
              [](const auto& in) {
                return naive(in, {.cols = in[0].shape()[-1],
                                  .centre = false,
                                  .eps = 1e-3,
                                  .unit_offset = true,
                                  .p = 0.3});
              },
          .samples = {{{2, 3}, {3}}, {{3, 10}, {10}}, {{3, 70}, {70}}},
          .tolerance_f32 = 4e-6};
}

NORMA_OP_CASE(norm_rows, group_norm) {
  return {
      .run =
          [](const auto& in) {
            return group_norm(in[0], input(in, 1), input(in, 2), {.groups = 2});
          },
      .reference =
          [](const auto& in) {
            const Shape& s = in[0].shape();
            const std::int64_t space = s.numel(2, s.rank());
            return naive(in, {.cols = s[1] / 2 * space, .groups = 2, .space = space});
          },
      // flagos-ai/FlagGems#5392: any rank, and the count is that of all axes.
      .samples = {{{2, 4, 3, 5}, {4}, {4}},
                  {{2, 4, 3, 5, 2}, {4}, {4}},
                  {{3, 6}, {6}, {6}},
                  {{2, 2, 7}},
                  {{5, 8, 70}, {8}, {8}},
                  {{3, 4, 5000}, {4}, {4}}},
      .tolerance_f32 = 4e-6,
      .errors =
          {// pytorch/pytorch#45687: groups that divide the elements, but not the channels; 0 before
           // the modulo.
           {[] {
              (void)group_norm(Tensor::zeros({2, 6, 2, 2}), {}, {}, {.groups = 4});
            },
            "group_norm: the groups must be at least 1 and divide the 6 channels; got 4 groups"},
           {[] {
              (void)group_norm(Tensor::zeros({2, 6}), {}, {}, {.groups = 0});
            },
            "got 0 groups"},
           {[] {
              (void)group_norm(Tensor::zeros({2, 6}), {}, {}, {.groups = -1});
            },
            "got -1 groups"}}};
}

NORMA_OP_CASE(norm_rows, instance_norm) {
  return {.run = [](const auto& in) { return instance_norm(in[0], input(in, 1), input(in, 2)); },
          .reference =
              [](const auto& in) {
                const Shape& s = in[0].shape();
                const std::int64_t space = s.numel(2, s.rank());
                return naive(in, {.cols = space, .groups = s[1], .space = space});
              },
          .samples = {{{2, 3, 4}, {3}, {3}}, {{2, 3, 5, 7}}, {{30, 3, 33, 20}, {3}, {3}}},
          .tolerance_f32 = 4e-6,
          // pytorch/pytorch#45687: the same rule for every batch size.
          .errors = {{[] {
                        (void)instance_norm(Tensor::zeros({2, 3, 1, 1}), {}, {});
                      },
                      "instance_norm: expected more than one value a channel"},
                     {[] {
                        (void)instance_norm(Tensor::zeros({1, 3, 1, 1}), {}, {});
                      },
                      "more than one"},
                     {[] {
                        (void)instance_norm(Tensor::zeros({4, 8}), {}, {});
                      },
                      "instance_norm: expected x (N, C, L) or (N, C, H, W); got (4, 8)"}}};
}

struct Golden {
  std::vector<double> y, dx, dweight, dbias;
};

// y, and the gradients where dy is 0.1, 0.2, ...
void check_golden(const Golden& golden, const std::function<Tensor(Tensor, Tensor, Tensor)>& f,
                  const Shape& x_shape, const Shape& affine) {
  Tensor x = Tensor::from(x_shape, {1, -2, .5, 3, 0, -1, 2, 4}, DType::f64).set_requires_grad();
  Tensor w = Tensor::from({4}, {1, 2, -.5, .25}, DType::f64);
  Tensor b = Tensor::from({4}, {.1, .2, .3, -.4}, DType::f64);
  if (affine.numel() == 2) {
    w = Tensor::from({2}, {1, 2}, DType::f64);
    b = Tensor::from({2}, {.1, .2}, DType::f64);
  }
  w.set_requires_grad();
  b.set_requires_grad();
  const Tensor y = f(x, w, b);
  const Tensor dy = Tensor::from(x_shape, {.1, .2, .3, .4, .5, .6, .7, .8}, DType::f64);
  backward(y, dy);
  CHECK(compare(y.to_vector(), golden.y, 1e-12) == "");
  CHECK(compare(x.grad().to_vector(), golden.dx, 1e-12) == "");
  CHECK(compare(w.grad().to_vector(), golden.dweight, 1e-12) == "");
  if (!golden.dbias.empty()) CHECK(compare(b.grad().to_vector(), golden.dbias, 1e-12) == "");
}

// Golden values: torch 2.13.0.
TEST_CASE("norms of rows: as torch") {
  check_golden(
      {{0.31055838998863705, -2.747817459840919, 0.33509306499810615, -0.06661588251799128,
        -0.5509436722692298, -2.143397220169227, 0.10471689831923103, -0.04198098025192365},
       {0.005531872155807388, 0.07357470290328816, -0.1515743680438555, 0.07246779298476,
        -0.07546497068368374, 0.18182356483675338, -0.3036268259260969, 0.19726823177302727},
       {-0.3044159971357512, -0.9978009120348601, 0.2523405033542128, 1.6790754511650583},
       {0.6, 0.8, 1.0, 1.2}},
      [](auto x, auto w, auto b) { return layer_norm(x, w, b); }, {2, 4}, {4});
  check_golden(
      {{0.5298128684663219, -2.1192514738652877, -0.13245321711658048, 0.39735965134974144, 0.0,
        -0.8728714778133566, -0.4364357389066783, 0.4364357389066783},
       {0.07064171083819759, 0.176604299403398, -0.07064171827416559, 0.10596255882132839,
        0.21821786945333915, 0.5008619713854575, -0.10703067801222453, 0.17873080899156138},
       {0.0529812868466322, -0.47378659073053575, 0.6904819647392978, 2.0323698066609572},
       {}},
      [](auto x, auto w, auto) { return rms_norm(x, w); }, {2, 4}, {4});
  check_golden(
      {{0.3105583899886371, -1.3739087299204595, 0.059627740007575314, 2.8670729398560697,
        0.6254718361346149, 0.8858493050423069, -0.30235844915961557, -0.04198098025192365},
       {-0.20468066380223252, 0.029042046691380302, 0.10565949059872409, 0.06997912651212812,
        -0.03376100712365514, -0.0008829949738101001, 0.06972832336665455, -0.0350843212691893},
       {-0.27372590698522825, 0.5123587489723503, -1.028491002185383, 1.4190572055469208},
       {.3, .7, 1.1, 1.5}},
      [](auto x, auto w, auto b) { return group_norm(x, w, b, {.groups = 2}); }, {1, 4, 2}, {4});
  check_golden(
      {{0.3105583899886371, -1.3739087299204595, 0.029813870003787657, 1.4335364699280349,
        -1.1018873445384598, -2.143397220169228, 0.981132406723076, 3.064152157984612},
       {-0.09127652120677009, 0.021297704480721852, 0.030425507068923358, 0.0395533096571249,
        -0.09002899927650926, 0.06707997394105225, 0.012357004540674763, 0.010592020794782143},
       {0.23863284198712206, 0.3905662033615381},
       {1.0, 2.6}},
      [](auto x, auto w, auto b) { return instance_norm(x, w, b); }, {1, 2, 4}, {2});
}

TEST_CASE(
    "norms of rows: microsoft/onnxruntime#21935, tracel-ai/burn#1992, a constant row gives exactly "
    "beta and finite gradients") {
  for (const double value : {1234.0, 0.1, 0.0, -3e30}) {
    for (std::int64_t n : {2, 256, 5000}) {
      INFO(n << " times " << value);
      Tensor x = Tensor::full({3, n}, value).set_requires_grad();
      Tensor w = Tensor::full({n}, 1.7).set_requires_grad();
      Tensor b = Tensor::full({n}, 0.3).set_requires_grad();
      const Tensor y = layer_norm(x, w, b);
      backward(y, random_tensor({3, n}, 1, DType::f32));
      CHECK(same_bits(y.detach(), Tensor::full({3, n}, 0.3)));
      for (const Tensor& t : {x, w, b}) {
        for (double g : t.grad().to_vector()) CHECK(std::isfinite(g));
      }
    }
  }
  // Without eps the variance is out of range, and is taken in another way.
  const Tensor constant = Tensor::full({5, 64}, -7.8071295348705538, DType::f64);
  CHECK(same_bits(layer_norm(constant, {}, {}, {.eps = 0}), Tensor::zeros({5, 64}, DType::f64)));
  // burn#1992.
  Tensor x = Tensor::zeros({1, 2}).set_requires_grad();
  Tensor w = Tensor::ones({2}).set_requires_grad(), b = Tensor::zeros({2}).set_requires_grad();
  backward(layer_norm(x, w, b), Tensor::from({1, 2}, {1, 0}));
  CHECK(compare(x.grad().to_vector(), {158.1139, -158.1139}, 1e-6) == "");
  CHECK(w.grad().to_vector() == std::vector<double>{0, 0});
  CHECK(b.grad().to_vector() == std::vector<double>{1, 0});
}

TEST_CASE(
    "norms of rows: tenstorrent/tt-metal#55159, squares that leave the range; eps counts as "
    "written") {
  const auto rms = [](std::initializer_list<double> row, DType type) {
    return rms_norm(Tensor::from({1, static_cast<std::int64_t>(row.size())}, row, type), {})
        .to_vector();
  };
  CHECK(rms({1e20, -1e20}, DType::f32) == std::vector<double>{1, -1});
  CHECK(compare(rms({1e200, -1e200}, DType::f64), {1, -1}, 1e-15) == "");
  CHECK(compare(rms({3e-5, 4e-5}, DType::f32), {0.029981, 0.039975}, 1e-6) == "");
  CHECK(rms({0, 0}, DType::f32) == std::vector<double>{0, 0});
  CHECK(compare(rms({1000, 1, 1, 1}, DType::f32), {1.999997, 0.001999997, 0.001999997, 0.001999997},
                1e-6) == "");
  const Tensor big = Tensor::from({1, 4}, {1e20, 3e20, -1e20, 5e20});
  CHECK(compare(layer_norm(big, {}, {}).to_vector(), {-0.4472136, 0.4472136, -1.3416408, 1.3416408},
                1e-6) == "");
  // A NaN stays visible.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double v : layer_norm(Tensor::from({1, 3}, {1, nan, 2}), {}, {}).to_vector()) {
    CHECK(std::isnan(v));
  }
}

TEST_CASE("norms of a run: a first element far from the others costs them no digits") {
  for (const std::int64_t n : {768, 4096, 4097, 50176}) {
    for (const std::int64_t place : {std::int64_t{0}, n > 4096 ? 4096 : n / 2}) {
      Tensor x = random_tensor({2, 1, n}, 1, DType::f32);
      auto* data = x.mutable_data<float>();
      for (std::int64_t r = 0; r < 2; ++r) data[r * n + place] = 1e8;
      const auto y_of = [&](const auto& norm) {
        return std::pair{norm(x).to_vector(), norm(to(x, DType::f64)).to_vector()};
      };
      for (const auto& [y, exact] :
           {y_of([](const Tensor& t) { return layer_norm(t, {}, {}); }),
            y_of([](const Tensor& t) { return instance_norm(t, {}, {}); }),
            y_of([](const Tensor& t) { return batch_norm(t, {}, {}, {}); })}) {
        double worst = 0;
        for (std::size_t i = 0; i < y.size(); ++i) {
          worst = std::max(worst, std::abs(y[i] - exact[i]) / std::abs(exact[i]));
        }
        INFO(n << " elements, the outlier at " << place);
        CHECK(worst < 3e-5);
      }
    }
  }
}

TEST_CASE(
    "norms of rows: one element computes for layer, group and RMS norm (pytorch/pytorch#45687)") {
  CHECK(layer_norm(Tensor::full({2, 1}, 7), {}, Tensor::full({1}, 0.5)).to_vector() ==
        std::vector<double>{0.5, 0.5});
  CHECK(group_norm(Tensor::full({1, 10, 1}, 7), {}, {}, {.groups = 10}).to_vector() ==
        std::vector<double>(10, 0.0));
  CHECK(compare(rms_norm(Tensor::from({2, 1}, {-7, 7}), {}).to_vector(), {-1, 1}, 1e-6) == "");
}

TEST_CASE("norms of rows: an empty batch has zero gradients for its parameters") {
  Tensor w = Tensor::ones({4}).set_requires_grad(), b = Tensor::ones({4}).set_requires_grad();
  for (const Shape& shape : {Shape{0, 4}, Shape{0, 4, 3}, Shape{2, 4, 0}}) {
    const Tensor x = Tensor::zeros(shape);
    const Tensor y = shape.rank() == 2 ? layer_norm(x, w, b) : group_norm(x, w, b, {.groups = 2});
    CHECK(y.shape() == shape);
    w.clear_grad();
    backward(y, Tensor::zeros(shape));
    CHECK(w.grad().to_vector() == std::vector<double>(4, 0.0));
  }
}

TEST_CASE("norms of rows: gradients are added to what is there") {
  const Tensor dy = random_tensor({3, 5}, 2, DType::f32);
  const auto grads = [&](int times) {
    Tensor x = random_tensor({3, 5}, 1, DType::f32).set_requires_grad();
    Tensor w = Tensor::ones({5}).set_requires_grad(), b = Tensor::zeros({5}).set_requires_grad();
    for (int i = 0; i < times; ++i) backward(layer_norm(x, w, b), dy);
    std::vector<double> all;
    for (const Tensor& t : {x, w, b}) {
      for (double g : t.grad().to_vector()) all.push_back(g / times);
    }
    return all;
  };
  CHECK(compare(grads(2), grads(1), 1e-7) == "");
}

TEST_CASE("instance_norm: running statistics") {
  // By hand: channel 0 holds 0, 2 and 4, 8 (means 1 and 6, unbiased variances 2 and 8).
  const Tensor x = Tensor::from({2, 1, 2}, {0, 2, 4, 8});
  RunningStatistics stats = make_running_statistics(1);
  (void)instance_norm(x, {}, {}, {.momentum = 0.5}, stats);
  CHECK(stats.mean.item() == 1.75);  // 0.5 * 3.5
  CHECK(stats.var.item() == 3);      // 0.5 * 1 + 0.5 * 5
  const Tensor y = instance_norm(x, {}, {}, {.eps = 0, .training = false}, stats);
  CHECK(compare(y.to_vector(), {-1.0103630, 0.1443376, 1.2990381, 3.6084392}, 1e-6) == "");
}

// Golden values: torch 2.13.0; to the bit.
TEST_CASE("norms of rows: half types round once, or twice where asked to") {
  const auto half = [](std::initializer_list<double> v, DType type) {
    return Tensor::from({static_cast<std::int64_t>(v.size())}, v, type);
  };
  const auto check = [](const Tensor& y, std::vector<double> expected) {
    CHECK(same_bits(y, Tensor::from(y.shape(), expected, y.dtype())));
  };
  check(rms_norm(half({0.81640625, -0.73828125, 0.37890625, -0.150390625, -5.09375, 0.390625,
                       4.0625, -0.7734375},
                      DType::bf16),
                 half({1.375, 0.85546875, 1.109375, 0.6640625, 0.984375, 0.953125, 0.90234375,
                       0.9765625},
                      DType::bf16),
                 {.cast = GainCast::before_gain}),
        {0.474609375, -0.267578125, 0.177734375, -0.0422363281, -2.125, 0.157226562, 1.5546875,
         -0.3203125});
  check(rms_norm(half({-0.5234375, 3.828125, 3.25, -1.4921875, -2.609375, 2.625, -4.21875, -0.9375},
                      DType::bf16),
                 half({0.7890625, 1.3046875, 1.1171875, 0.4921875, 0.28125, 0.85546875, 1.0546875,
                       0.96484375},
                      DType::bf16)),
        {-0.150390625, 1.8203125, 1.328125, -0.267578125, -0.267578125, 0.8203125, -1.625,
         -0.330078125});
  check(layer_norm(half({2.66601562, 2.68164062, -0.225341797, 3.39257812, 0.651367188, 0.647460938,
                         1.49121094, -0.495849609},
                        DType::f16),
                   half({1.02929688, 0.843261719, 1.01367188, 1.35351562, 1.04589844, 1.33105469,
                         0.874511719, 0.895507812},
                        DType::f16),
                   half({-0.967773438, 0.184204102, 1.47460938, -0.106079102, -0.954589844,
                         0.993164062, 0.190429688, -0.16809082},
                        DType::f16)),
        {0.03515625, 1.015625, 0.290283203, 1.94140625, -1.49707031, 0.299072266, 0.28125,
         -1.39355469});
}

}  // namespace
}  // namespace norma::test
