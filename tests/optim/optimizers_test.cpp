// What each optimizer computes, against torch 2.13.0.
#include <cmath>

#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::give_gradient;
using test::optimizer_config;
using test::parameter;

struct Row {
  const char* config;
  std::vector<double> first;  // w (2, 3) and b (3) after one step
  std::vector<double> last;   // after seven
  std::vector<double> late;   // after two hundred
};

// torch 2.13.0 in f64: w[i] = cos(0.9 i), b[i] = cos(0.9 (6 + i)); in step t = 0, 1, ... the
// gradient of element i (0 to 5 in w, 6 to 8 in b) is sin(1.3 i + 0.7 t + 0.5).
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {R"({"type":"sgd","lr":0.1,"weight_decay":0.05,"no_decay":[]})",
       {0.94705744614, 0.521117155341, -0.230224150463, -0.804391573918, -0.837206069993,
        -0.275440480306, 0.541302228187, 1.01229202132, 0.70485318329},
       {0.875480606214, 0.729913549456, -0.0599196611761, -0.917331954746, -1.04905823928,
        -0.257118050063, 0.767357835666, 1.10165773507, 0.505733039974},
       {0.263029137384, 0.0763586305311, -0.0606286609382, -0.167841853035, -0.264123571283,
        -0.206520125503, 0.0988525514461, 0.424354883789, 0.388027283464}},
      {R"({"type":"sgd","lr":0.1,"momentum":0.9,"no_decay":[]})",
       {0.95205744614, 0.524225205183, -0.231360160936, -0.808911934628, -0.841689862074,
        -0.276494459303, 0.544475692567, 1.01729131451, 0.707894939863},
       {0.0349005205088, 0.54892133439, 0.699009135963, -0.335862669617, -1.51897891043,
        -1.11189177846, 0.774829132299, 1.97592718426, 0.990409444606},
       {-0.294312312719, 0.326071725199, 0.908997950355, -0.000669536678169, -1.54964018397,
        -1.46348862092, 0.617386918834, 2.24329281136, 1.2908916422}},
      {R"({"type":"sgd","lr":0.1,"momentum":0.9,"dampening":0.3,"weight_decay":0.05,"no_decay":[]})",
       {0.94705744614, 0.521117155341, -0.230224150463, -0.804391573918, -0.837206069993,
        -0.275440480306, 0.541302228187, 1.01229202132, 0.70485318329},
       {0.180905987657, 0.380233670167, 0.424452905845, -0.300061879573, -1.16956092289,
        -0.905497012833, 0.548820979842, 1.60950916731, 0.958774087708},
       {0.10393781423, -0.0846598500574, -0.14922377192, 0.0048229729321, 0.151794068466,
        0.0763765961661, -0.110935096035, -0.135719604437, 0.0383364659557}},
      {R"({"type":"sgd","lr":0.1,"momentum":0.8,"nesterov":true,"weight_decay":0.05,"no_decay":[]})",
       {0.904703403051, 0.440722904998, -0.232641795079, -0.724647119439, -0.78956419292,
        -0.327156225005, 0.466589709983, 1.02223872928, 0.782054678297},
       {0.257378029417, 0.736082056897, 0.529031936161, -0.596551663686, -1.41919609263,
        -0.729105998428, 0.895987826286, 1.60932831805, 0.59650805311},
       {0.0472134805214, -0.266951280276, -0.188186864843, 0.165597417453, 0.27409782825,
        -0.0216172814763, -0.286288660665, -0.129662726258, 0.219886965149}},
      {R"({"type":"adam","lr":0.01,"no_decay":[]})",
       {0.990000000209, 0.611609968373, -0.237202092288, -0.894072142122, -0.886758416516,
        -0.220795799279, 0.624692876053, 1.00985863581, 0.618351314432},
       {0.950058775672, 0.602718494284, -0.19583878761, -0.869342324096, -0.908050665919,
        -0.257335420882, 0.623448864702, 1.05242519058, 0.637252230223},
       {0.944559397372, 0.599030048563, -0.192294240077, -0.863860958969, -0.908512001194,
        -0.263158413518, 0.620804037233, 1.05693636305, 0.642172683477}},
      {R"({"type":"adam","lr":0.01,"betas":[0.8,0.9],"eps":0.001,"weight_decay":0.1,"amsgrad":true,"no_decay":[]})",
       {0.990017228739, 0.611619611392, -0.236698581504, -0.894081729659, -0.886774008168,
        -0.220780098552, 0.624703221044, 1.00972590638, 0.618340626217},
       {0.951287161371, 0.605530074429, -0.196060745994, -0.871597990472, -0.90430003402,
        -0.251113014063, 0.625187968063, 1.04472391123, 0.627486801119},
       {0.740373820454, 0.460493167293, -0.158788541471, -0.671725278093, -0.689995084515,
        -0.191362383124, 0.474600423616, 0.802742406124, 0.489010397362}},
      {R"({"type":"adamw","lr":0.01,"no_decay":[]})",
       {0.989900000209, 0.611547807377, -0.237179372079, -0.893981734908, -0.886668740674,
        -0.220774719699, 0.624629406766, 1.00975864995, 0.6182904793},
       {0.949378460685, 0.602296961999, -0.19568561872, -0.868726793956, -0.907426760816,
        -0.257168759839, 0.623016073399, 1.05170638164, 0.636810623765},
       {0.925865461439, 0.587132284578, -0.188515332682, -0.846735845337, -0.890481412917,
        -0.257944780537, 0.608471163099, 1.03598551186, 0.629482571297}},
      {R"({"type":"adamw","lr":0.01,"betas":[0.8,0.9],"eps":0.001,"weight_decay":0.1,"amsgrad":true,"no_decay":[]})",
       {0.98902081488, 0.610998616316, -0.236740044209, -0.893178567438, -0.885879784186,
        -0.220569805753, 0.624069255157, 1.0088017414, 0.617732927453},
       {0.947757693615, 0.604790537416, -0.195806193477, -0.869438912821, -0.904526539349,
        -0.250387550059, 0.624625022554, 1.0419837895, 0.626304111721},
       {0.785536508733, 0.491512496994, -0.169543151556, -0.714075829723, -0.736115220288,
        -0.204272208135, 0.506783733566, 0.852542179237, 0.521103707789}},
      {R"({"type":"radam","lr":0.02,"weight_decay":0.1,"no_decay":[]})",
       {0.988411489228, 0.600889795717, -0.227579303752, -0.883231956255, -0.88395118865,
        -0.223513939806, 0.615380053516, 1.00134545474, 0.627043336969},
       {0.925393082429, 0.571802010027, -0.183645354563, -0.829348924788, -0.893884048224,
        -0.27749512417, 0.597589362549, 1.04217133873, 0.660944976243},
       {0.827115239791, 0.509327803397, -0.164580840266, -0.740369967547, -0.796731986736,
        -0.247936006145, 0.532166726242, 0.930227474851, 0.591326933291}},
      {R"({"type":"rmsprop","weight_decay":0.1,"no_decay":[]})",
       {0.900000017258, 0.521609977923, -0.327201564486, -0.804072151614, -0.79675843195,
        -0.310795783705, 0.534692886298, 1.09985850187, 0.708351303833},
       {0.801247388933, 0.627591563936, -0.125284436447, -0.832249561258, -0.965861241992,
        -0.339402197006, 0.664183331205, 1.22561521375, 0.60223353844},
       {0.526123217536, 0.354997081444, -0.102051124258, -0.50791115284, -0.603246576448,
        -0.266723042733, 0.38035251671, 0.834189081422, 0.478621935355}},
      {R"({"type":"rmsprop","alpha":0.9,"momentum":0.5,"centered":true,"no_decay":[]})",
       {0.966666668984, 0.588276636078, -0.260535401305, -0.870738809851, -0.863425085019,
        -0.244129131073, 0.601359543841, 1.03319196334, 0.641684646749},
       {0.847710017039, 0.622724941474, -0.13893988851, -0.846895784364, -0.97410050703,
        -0.334084685642, 0.657888947812, 1.19590427078, 0.641492158771},
       {0.856376971753, 0.560765877988, -0.181449863136, -0.808314320921, -0.909814169465,
        -0.339596946186, 0.59110202617, 1.16673896836, 0.69104535137}},
      {R"({"type":"adagrad","lr":0.1,"lr_decay":0.1,"weight_decay":0.1,"initial_accumulator_value":0.2,"no_decay":[]})",
       {0.920836853704, 0.529798774129, -0.231415674746, -0.812178029009, -0.814772756257,
        -0.292593178722, 0.543951829366, 1.01625675138, 0.69855607747},
       {0.823005034443, 0.592273553364, -0.0716560289168, -0.810082288393, -0.94058975688,
        -0.340333440071, 0.628103449024, 1.12822607341, 0.64155499329},
       {0.770451146808, 0.519032345018, -0.0812318861181, -0.73465963827, -0.854632557557,
        -0.337953395395, 0.552004097891, 1.06107617165, 0.643004854927}},
      {R"({"type":"adafactor","lr":0.05,"weight_decay":0.1,"no_decay":[]})",
       {0.969983723692, 0.570103916584, -0.229577982091, -0.857439303598, -0.869063615861,
        -0.256802793062, 0.593085012242, 1.03329374252, 0.643743957281},
       {0.929934813058, 0.653494787865, -0.151024177698, -0.907099915541, -0.962156514196,
        -0.236139531814, 0.719365202483, 1.0626954918, 0.512543681795},
       {0.378074927889, 0.132265546194, -0.143341421866, -0.27458161789, -0.240698743651,
        -0.0938946063179, 0.298234567301, 0.340781442491, 0.134911684873}},
  };
  return all;
}

struct Model {
  explicit Model(DType dtype) {
    std::vector<double> values(9);
    for (std::size_t i = 0; i < 9; ++i) values[i] = std::cos(0.9 * static_cast<double>(i));
    w = parameter({2, 3}, {values.begin(), values.begin() + 6}, dtype);
    b = parameter({3}, {values.begin() + 6, values.end()}, dtype);
  }
  [[nodiscard]] std::vector<NamedParameter> parameters() const { return {{"w", w}, {"b", b}}; }
  // Gradients that count `scale` times must be divided by it.
  void give_gradients(int t, double scale = 1) {
    std::vector<double> g(9);
    for (int i = 0; i < 9; ++i) {
      g[static_cast<std::size_t>(i)] = std::sin(1.3 * i + 0.7 * t + 0.5) / scale;
    }
    give_gradient(w, {g.begin(), g.begin() + 6});
    give_gradient(b, {g.begin() + 6, g.end()});
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all = w.to_vector();
    for (const double v : b.to_vector()) all.push_back(v);
    return all;
  }
  Tensor w, b;
};

void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(std::fabs(got[i] - expected[i]) <= tolerance);
  }
}

TEST_CASE("optimizers give torch's weights", "[optim]") {
  for (const Row& row : rows()) {
    INFO(row.config);
    const OptimizerConfig config = optimizer_config(row.config);
    for (const DType dtype : {DType::f64, DType::f32}) {
      const double tolerance = dtype == DType::f64 ? 1e-11 : 3e-6;
      Model model(dtype);
      const OptimizerPtr optimizer = make_optimizer(config, model.parameters());
      for (int t = 0; t < 7; ++t) {
        model.give_gradients(t);
        optimizer->step(config.options().lr);
        if (t == 0) check_close(model.values(), row.first, tolerance);
      }
      check_close(model.values(), row.last, tolerance);
      if (dtype == DType::f64) {
        for (int t = 7; t < 200; ++t) {
          model.give_gradients(t);
          optimizer->step(config.options().lr);
        }
        check_close(model.values(), row.late, 1e-11);
      }
      // The factor of clipping gives what scaled gradients give.
      Model scaled(dtype);
      const OptimizerPtr other = make_optimizer(config, scaled.parameters());
      for (int t = 0; t < 7; ++t) {
        scaled.give_gradients(t, 0.25);
        other->step(config.options().lr, 0.25);
      }
      check_close(scaled.values(), row.last, tolerance);
    }
  }
}

TEST_CASE("every optimizer has a row of numbers", "[optim]") {
  for (const auto& member : config::type_of<OptimizerConfig>().as_family()->members()) {
    INFO(member.type);
    bool found = false;
    for (const Row& row : rows()) {
      found = found || optimizer_config(row.config).type() == member.type;
    }
    // Not in torch, or there in bf16 alone: see their own tests.
    CHECK((found || member.type == "lion" || member.type == "muon"));
  }
}

// bitsandbytes-foundation/bitsandbytes#1992.
TEST_CASE("lion keeps the decay out of the sign, and the sign of 0 is 0", "[optim]") {
  // By hand: p = 2 (1 - 0.1 * 0.5) + 0.1; the coupled form gives 1.9. Element 1 has no gradient.
  Tensor p = parameter({2}, {2, 2}, DType::f64);
  const OptimizerPtr lion =
      make_optimizer(optimizer_config(R"({"type":"lion","weight_decay":0.5,"no_decay":[]})"),
                     std::vector<NamedParameter>{{"p", p}});
  give_gradient(p, {-0.5, 0});
  lion->step(0.1);
  check_close(p.to_vector(), {2.0, 1.9}, 1e-15);
  check_close(find_tensor(lion->state(), "momentum.p")->tensor.to_vector(), {-0.005, 0}, 1e-15);
  // The blend of the old momentum: sign(0.9 * -0.005 + 0.1 * 0.04) = -1, so p rises.
  give_gradient(p, {0.04, 0});
  lion->step(0.1);
  check_close(p.to_vector(), {2.0 * 0.95 + 0.1, 1.9 * 0.95}, 1e-15);
}

// From the formulas of Chen et al. 2023 and Kalra and Barkeshli 2024, in Python's floats: what the
// rows above are given, after two hundred steps.
TEST_CASE("lion and GI-Adam over many steps", "[optim]") {
  const std::vector<std::pair<const char*, std::vector<double>>> late = {
      {R"({"type":"lion","lr":0.01,"weight_decay":0.1,"no_decay":[]})",
       {0.856434222107, 0.60455592695, -0.0713036597654, -0.766793560911, -0.931422965569,
        -0.389447897504, 0.507521268645, 0.97470716533, 0.716502886137}},
      {R"({"type":"adamw","lr":0.01,"weight_decay":0.1,"betas":[0.9,0.99],"v_init":"first_gradient","no_decay":[]})",
       {0.806974276567, 0.505836188791, -0.152540199551, -0.734981777062, -0.737408483955,
        -0.18112747056, 0.517589406564, 0.842973317971, 0.502325606861}}};
  for (const auto& [json, expected] : late) {
    INFO(json);
    const OptimizerConfig config = optimizer_config(json);
    Model model(DType::f64);
    const OptimizerPtr optimizer = make_optimizer(config, model.parameters());
    for (int t = 0; t < 200; ++t) {
      model.give_gradients(t);
      optimizer->step(config.options().lr);
    }
    check_close(model.values(), expected, 1e-11);
  }
}

TEST_CASE("v_init first_gradient starts from the first square", "[optim]") {
  // By hand, beta2 = 0.9, beta1 = 0: v0 = g0^2 = 4, so v1 = 4, v2 = 0.9 * 4 + 0.1 * 1 = 3.7, with
  // both corrections kept: steps 0.1 * 2 / sqrt(4 / 0.1), 0.1 * 1 / sqrt(3.7 / 0.19).
  Tensor p = parameter({1}, {1}, DType::f64);
  const OptimizerPtr adam = make_optimizer(
      optimizer_config(R"({"type":"adam","betas":[0,0.9],"eps":1e-30,"v_init":"first_gradient"})"),
      std::vector<NamedParameter>{{"p", p}});
  give_gradient(p, {2});
  adam->step(0.1);
  const double after_one = 1 - 0.1 * 2 / std::sqrt(40.0);
  check_close(p.to_vector(), {after_one}, 1e-15);
  give_gradient(p, {1});
  adam->step(0.1);
  check_close(p.to_vector(), {after_one - 0.1 / std::sqrt(3.7 / 0.19)}, 1e-15);
}

TEST_CASE("a configuration that cannot mean anything is refused", "[optim]") {
  NORMA_CHECK_ERROR(optimizer_config(R"({"type":"adamw","betas":[0.9,1]})"), "optimizer.betas");
  NORMA_CHECK_ERROR(optimizer_config(R"({"type":"sgd","nesterov":true})"), "optimizer.nesterov");
  NORMA_CHECK_ERROR(optimizer_config(R"({"type":"sgd","lr":-1})"), "optimizer.lr");
  NORMA_CHECK_ERROR(optimizer_config(R"({"type":"adamv"})"), "adamw");
  // Steps that add up without end.
  for (const char* type : {"sgd", "rmsprop"}) {
    for (const char* momentum : {"1", "1.5", "-0.1"}) {
      NORMA_CHECK_ERROR(
          optimizer_config(fmt::format(R"({{"type":"{}","momentum":{}}})", type, momentum)),
          "optimizer.momentum: must be in [0, 1); got ");
    }
    (void)optimizer_config(fmt::format(R"({{"type":"{}","momentum":0.999}})", type));
  }
  CHECK(optimizer_config(R"("adamw")").options().weight_decay == 0.01);
  CHECK(optimizer_config(R"("adam")").options().weight_decay == 0);
}

}  // namespace
}  // namespace norma
