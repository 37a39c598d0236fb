#include "apps/conformance/conformance.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/data/idx.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"
#include "core/autograd.h"
#include "core/file.h"
#include "core/parameters.h"
#include "core/safetensors.h"
#include "layers/layers.h"

namespace norma {
namespace fs = std::filesystem;
namespace {

// One case with its file, so that paths beside it are found.
class Case {
 public:
  Case(const Json& json, std::string folder) : json_(json), folder_(std::move(folder)) {
    rtol_ = json.value("rtol", 1e-5);
    atol_ = json.value("atol", 1e-6);
  }

  // Empty, or what failed.
  std::string run() {
    const std::string kind = json_.at("kind");
    constexpr std::string_view kKinds[] = {"layer", "loss",   "optimizer", "schedule",
                                           "model", "config", "file"};
    require(std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds),
            "unknown kind \"{}\"", kind);
    require(json_.contains("expect") || json_.contains("expect_error"),
            "has neither expect nor expect_error, so that nothing could fail");
    const std::string mode = json_.value("mode", "train");
    require(mode == "train" || mode == "eval", "expected mode train or eval; got \"{}\"", mode);
    if (!json_.contains("expect_error")) return dispatch(kind);
    std::string message;
    try {
      (void)dispatch(kind);
    } catch (const Json::exception& e) {
      return fmt::format("the case is malformed: {}", e.what());
    } catch (const std::exception& e) {
      message = e.what();
    }
    return check_error(message);
  }

  // What could not be checked; empty mostly.
  [[nodiscard]] const std::string& note() const { return note_; }

 private:
  std::string dispatch(const std::string& kind) {
    if (kind == "layer") return layer();
    if (kind == "loss") return loss();
    if (kind == "optimizer") return optimizer();
    if (kind == "schedule") return schedule();
    if (kind == "model") return model();
    if (kind == "config") return configuration();
    return file();
  }

  std::string check_error(const std::string& message) const {
    const auto lower = [](std::string s) {
      std::transform(s.begin(), s.end(), s.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      return s;
    };
    const Json& texts = json_.at("expect_error");
    if (texts.empty()) return message.empty() ? "" : "expected no error; got: " + message;
    if (message.empty()) return "expected an error; got none";
    for (const Json& text : texts) {
      if (lower(message).find(lower(text)) == std::string::npos) {
        return fmt::format("expected \"{}\" in the error; got: {}", text.get<std::string>(),
                           message);
      }
    }
    return {};
  }

  Tensor tensor(const Json& j) const {
    if (j.contains("file")) {
      return SafetensorsFile(folder_ + "/" + j.at("file").get<std::string>()).read(j.at("key"));
    }
    Shape shape;
    for (const Json& s : j.at("shape")) shape.push_back(s);
    std::vector<double> values;
    for (const Json& v : j.at("data")) values.push_back(number_of(v));
    return Tensor::from(shape, values, dtype_from_name(j.at("dtype").get<std::string>()));
  }

  std::vector<NamedTensor> tensors(const Json& j) const {
    std::vector<NamedTensor> out;
    for (const auto& [name, value] : j.items()) out.push_back({name, tensor(value)});
    return out;
  }

  // "" or what differs; `what` names the compared thing.
  std::string compare(const std::string& what, const std::vector<double>& got,
                      const std::vector<double>& expected) const {
    if (got.size() != expected.size()) {
      return fmt::format("{}: {} values, expected {}", what, got.size(), expected.size());
    }
    double worst = 0;
    std::string text;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double a = got[i], e = expected[i];
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      const double excess = std::abs(a - e) / (atol_ + rtol_ * std::abs(e));
      if (excess <= 1 || excess < worst) continue;
      worst = excess;
      text = fmt::format("{}[{}]: got {:.9g}, expected {:.9g}, off by {:.3g}", what, i, a, e,
                         std::abs(a - e));
    }
    return text;
  }

  std::string compare(const std::string& what, const Tensor& got, const Json& expected_json) const {
    if (expected_json.is_null()) return {};
    const Tensor expected = tensor(expected_json);
    if (!got.defined()) return what + ": nothing, expected a tensor";
    if (!(got.shape() == expected.shape())) {
      return fmt::format("{}: shape {}, expected {}", what, got.shape().to_string(),
                         expected.shape().to_string());
    }
    return compare(what, got.to_vector(), expected.to_vector());
  }

  std::string compare_all(const std::string& what, const std::vector<NamedTensor>& got,
                          const Json& expected) const {
    for (const auto& [name, value] : expected.items()) {
      const NamedTensor* t = find_tensor(got, name);
      if (!t) return fmt::format("{} {}: does not exist", what, name);
      if (std::string s = compare(what + " " + name, t->tensor, value); !s.empty()) return s;
    }
    return {};
  }

  static std::vector<NamedTensor> gradients(const Module& module) {
    std::vector<NamedTensor> out;
    for (const NamedParameter& p : module.named_parameters())
      out.push_back({p.name, p.tensor.grad()});
    return out;
  }

  Forward forward_pass() const {
    Forward pass;
    if (json_.contains("mask")) {
      const Tensor mask = tensor(json_.at("mask"));
      pass.mask = Tensor::empty(mask.shape(), DType::u8);
      pass.mask.copy_(mask);
    }
    return pass;
  }

  std::string layer() {
    const auto config = config::parse<LayerConfig>(json_.at("layer"), "layer");
    Tensor x = tensor(json_.at("inputs").at(0));
    Signature in{.shape = x.shape().sub(1, x.rank())};
    if (!is_floating(x.dtype())) {
      in.vocab = json_.at("layer").value("vocab", std::int64_t{1});
    } else {
      x.set_requires_grad();
    }
    const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::f32;
    const LayerPtr layer = config.build(Scope(0, TorchInit{}, dtype), in);
    if (json_.contains("state")) layer->load_state_dict(tensors(json_.at("state")));
    layer->train(json_.value("mode", "train") == "train");
    const Tensor y = layer->forward(x, forward_pass());
    if (json_.contains("grad_output") && y.requires_grad()) {
      backward(y, tensor(json_.at("grad_output")));
    }
    if (!json_.contains("expect")) return {};
    const Json& expect = json_.at("expect");
    std::string s;
    if (expect.contains("output")) s = compare("output", y, expect.at("output"));
    if (s.empty() && expect.contains("grad_inputs")) {
      s = compare("grad_inputs[0]", x.grad(), expect.at("grad_inputs").at(0));
    }
    if (s.empty() && expect.contains("grads")) {
      s = compare_all("gradient of", gradients(*layer), expect.at("grads"));
    }
    if (s.empty() && expect.contains("buffers")) {
      s = compare_all("buffer", layer->named_buffers(), checkable_buffers(expect.at("buffers")));
    }
    return s;
  }

  // Note [States recorded too late]. PyTorch's state_dict() shares memory with the module, so a
  // case whose state was taken without a copy holds the running statistics of after the call,
  // beside a counter of before it. No implementation can give such a buffer: moved once more, it
  // differs. It is told from a right one by the counter, which moves while the statistics are the
  // same to the bit; it is left out, with a note, and the rest of the case is checked. With a
  // momentum of 0 they are the same by right.
  Json checkable_buffers(const Json& expected) {
    constexpr const char* kCounter = "num_batches_tracked";
    if (!json_.contains("state")) return expected;
    const Json& state = json_.at("state");
    const auto data = [](const Json& tensors, const std::string& name) {
      return tensors.contains(name) ? tensors.at(name).at("data") : Json();
    };
    const Json& layer = json_.at("layer");
    const bool still = layer.is_object() && layer.value("momentum", Json()) == 0;
    if (still || data(state, kCounter) == data(expected, kCounter)) return expected;
    Json out = Json::object();
    for (const auto& [name, value] : expected.items()) {
      if (name != kCounter && data(state, name) == value.at("data")) {
        note_ = "its state holds the running statistics of after the call; they are not checked";
      } else {
        out[name] = value;
      }
    }
    return out;
  }

  std::string loss() {
    const auto config = config::parse<LossConfig>(json_.at("loss"), "loss");
    Tensor x = tensor(json_.at("inputs").at(0));
    x.set_requires_grad();
    const Tensor y = config.apply(x, tensor(json_.at("inputs").at(1)));
    if (!json_.contains("expect")) return {};
    const Json& expect = json_.at("expect");
    std::string s = compare("output", y.to_vector(), {number_of(expect.at("output"))});
    if (s.empty() && expect.contains("grad_inputs")) {
      backward(y);
      s = compare("grad_inputs[0]", x.grad(), expect.at("grad_inputs").at(0));
    }
    return s;
  }

  std::string optimizer() {
    const auto config = config::parse<OptimizerConfig>(json_.at("optimizer"), "optimizer");
    std::vector<NamedParameter> parameters = tensors(json_.at("params"));
    for (NamedParameter& p : parameters) p.tensor.set_requires_grad();
    const OptimizerPtr optimizer = make_optimizer(config, parameters);
    const Json& steps = json_.at("grads");
    for (std::size_t t = 0; t < steps.size(); ++t) {
      optimizer->clear_gradients();
      for (NamedParameter& p : parameters) {
        if (steps[t].contains(p.name) && !steps[t].at(p.name).is_null()) {
          p.tensor.set_grad(tensor(steps[t].at(p.name)));
        }
      }
      optimizer->step(config.options().lr);
      const Json& expect = json_.at("expect").at("params").at(t);
      if (std::string s = compare_all(fmt::format("step {}:", t), parameters, expect); !s.empty()) {
        return s;
      }
    }
    return {};
  }

  std::string schedule() {
    const auto config = config::parse<ScheduleConfig>(json_.at("schedule"), "schedule");
    const SchedulePtr schedule = make_schedule(config, json_.at("lr").get<double>(),
                                               json_.at("total_steps").get<std::int64_t>());
    std::vector<double> got, expected;
    for (const Json& t : json_.at("steps")) got.push_back(schedule->rate(t));
    if (!json_.contains("expect")) return {};
    for (const Json& v : json_.at("expect").at("lr")) expected.push_back(number_of(v));
    return compare("lr", got, expected);
  }

  std::string model() {
    const auto config = config::parse<ModelConfig>(json_.at("model"), "model");
    const auto loss_config =
        config::parse<LossConfig>(json_.value("loss", Json("cross_entropy")), "loss");
    // The last input is what the model is called with; an encoder-decoder has its source before it.
    const Json& inputs = json_.at("inputs");
    const Tensor x = tensor(inputs.back());
    Forward pass = forward_pass();
    Signature in{.shape = x.shape().sub(1, x.rank())};
    if (inputs.size() > 1) {
      pass.source = tensor(inputs.front());
      std::swap(pass.mask, pass.source_mask);
      in.source = pass.source.shape().sub(1, pass.source.rank());
    }
    if (!is_floating(x.dtype())) in.vocab = json_.at("model").at("vocab");
    const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::f32;
    const ModelPtr model = config.build(0, in, dtype);
    if (json_.contains("weights")) {
      const SafetensorsFile weights(folder_ + "/" + json_.at("weights").get<std::string>());
      (void)load_safetensors(weights, model->state_dict());
    } else if (json_.contains("state")) {
      model->load_state_dict(tensors(json_.at("state")));
    }
    model->train(json_.value("mode", "train") == "train");
    const Tensor y = model->forward(x, pass);
    if (!json_.contains("expect")) return {};
    const Json& expect = json_.at("expect");
    std::string s;
    if (expect.contains("output")) s = compare("output", y, expect.at("output"));
    if (!s.empty() || !json_.contains("targets")) return s;
    const Tensor loss = loss_config.apply(y, tensor(json_.at("targets")));
    if (expect.contains("loss")) {
      s = compare("loss", loss.to_vector(), {number_of(expect.at("loss"))});
    }
    if (!s.empty()) return s;
    backward(loss);
    if (expect.contains("grads"))
      s = compare_all("gradient of", gradients(*model), expect.at("grads"));
    if (s.empty() && expect.contains("grad_norms")) s = grad_norms(*model, expect.at("grad_norms"));
    return s;
  }

  std::string grad_norms(const Module& module, const Json& expected) const {
    const std::vector<NamedTensor> got = gradients(module);
    for (const auto& [name, value] : expected.items()) {
      const NamedTensor* g = find_tensor(got, name);
      if (!g) return fmt::format("gradient norm of {}: does not exist", name);
      double square = 0;
      if (g->tensor.defined()) {
        for (double v : g->tensor.to_vector()) square += v * v;
      }
      const std::string s =
          compare("gradient norm of " + name, {std::sqrt(square)}, {number_of(value)});
      if (!s.empty()) return s;
    }
    return {};
  }

  std::string configuration() {
    if (json_.contains("text")) {
      const std::string text =
          json_.at("text").is_null() ? "" : json_.at("text").get<std::string>();
      (void)parse_run_config(config::parse_json(text));
    } else {
      (void)parse_run_config(json_.at("config"));
    }
    return {};
  }

  std::string file() {
    const std::string path = folder_ + "/" + json_.at("file").get<std::string>();
    const std::string as = json_.at("as");
    if (as == "safetensors") {
      const SafetensorsFile tensors(path);
      for (const auto& entry : tensors.entries()) {
        if (entry.dtype) (void)tensors.read(entry.name);
      }
    } else if (as == "idx") {
      (void)read_idx(path);
    } else if (as == "config") {
      (void)load_run_config(path);
    } else {
      throw Error::format("unknown \"as\": \"{}\"", as);
    }
    return {};
  }

  const Json& json_;
  std::string folder_;
  std::string note_;
  double rtol_, atol_;
};

std::vector<fs::path> case_files(const std::string& folder) {
  require(fs::exists(folder), "{}: does not exist; give a folder of conformance cases", folder);
  if (!fs::is_directory(folder)) return {fs::path(folder)};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<CaseResult> run_cases(const std::vector<std::string>& folders,
                                  const std::string& only) {
  std::vector<CaseResult> results;
  for (const std::string& folder : folders) {
    for (const fs::path& path : case_files(folder)) {
      const Json content = config::parse_json(read_file(path.string()), path.string());
      const Json list = content.is_array() ? content : Json::array({content});
      for (const Json& json : list) {
        require(json.is_object() && json.contains("name") && json.contains("kind"),
                "{}: expected conformance cases, each with a name and a kind", path.string());
        CaseResult result{json.at("name"), path.filename().string(), {}, {}};
        if (!matches_glob(result.name, only)) continue;
        try {
          Case one(json, path.parent_path().string());
          result.failure = one.run();
          result.note = one.note();
        } catch (const std::exception& e) {
          result.failure = e.what();
        }
        // A line a case, whatever the message.
        for (std::size_t at; (at = result.failure.find('\n')) != std::string::npos;) {
          result.failure.replace(at, 1, "; ");
        }
        results.push_back(std::move(result));
      }
    }
  }
  return results;
}

}  // namespace norma
