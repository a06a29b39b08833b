// TT modules through the installed library: a layer of a model file and layers made by hand through their life cycle,
// beside the nn.Module on the CPU; refusals, run modes, and a module of the program's own that holds others.
//   modules MODEL.pt2
#include <ttrt/module.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "expect.h"

namespace {

namespace device = tt_lib::device;
using ttrt::Module;
using ttrt::Tensor;
using ttrt::TorchModule;

Tensor random_tensor(ttrt::Shape shape, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return Tensor::from(values, std::move(shape));
}

// The largest difference over the largest expected value; 1e9 where the shapes differ.
double error_to(const Tensor& actual, const Tensor& expected) {
  const Tensor a = actual.to(device::GetHost()), e = expected.to(device::GetHost());
  if (a.shape() != e.shape()) return 1e9;
  double worst = 0, most = 1e-30;
  for (std::size_t i = 0; i < e.values<float>().size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(a.values<float>()[i] - e.values<float>()[i])));
    most = std::max(most, static_cast<double>(std::abs(e.values<float>()[i])));
  }
  return worst / most;
}

std::int64_t held(const std::shared_ptr<device::Device>& d) { return d->memory()[0].allocated_per_bank; }

// A linear layer of a model file: to the device and back, with the CPU's numbers.
void life_cycle(const ttrt::Model& bert, const std::shared_ptr<device::Device>& d) {
  const std::string path = "model.encoder.layer.0.intermediate.dense";
  const TorchModule source = TorchModule::of(bert, path);
  EXPECT(source.class_name().ends_with("Linear") && source.path() == path && source.inputs().size() == 1);
  const Tensor& weight = source.parameter("weight");
  EXPECT((weight.shape() == ttrt::Shape{128, 64}) && source.has("bias") && is_usage([&] { source.parameter("w"); }));
  const std::vector<ttrt::TensorInfo> takes = source.inputs();
  ttrt::Shape shape;
  for (const ttrt::Dim& dim : takes[0].dims) shape.push_back(dim.size.value_or(3));
  const Tensor x = random_tensor(shape, 1);
  const Tensor expected = source.forward({x})[0];

  const std::shared_ptr<Module> linear = ttrt::from_torch(source, "TTNNLinearLLama");
  linear->to_device(d);
  linear->preprocess_weights();
  const std::int64_t before = held(d);
  linear->move_weights_to_device();
  EXPECT(linear->weights_on_device() && held(d) > before);
  const Tensor y = (*linear)({x})[0];
  EXPECT(!y.is_resident() && error_to(y, expected) < 0.03);
  EXPECT(error_to(y, (*ttrt::from_torch(source, "TTNNLinear", {.weight_dtype = ttrt::Format::bfloat4_b}))({x})[0]) >
         0.01);
  const Tensor there = (*linear)({x.to(d)})[0];
  EXPECT(there.is_resident() && error_to(there, y) == 0);
  linear->move_weights_to_host();
  EXPECT(!linear->weights_on_device() && linear->report().calls == 2 && linear->report().on_device == 2);
  EXPECT(error_to((*linear)({x})[0], y) == 0 && linear->weights_on_device());  // it moves them there again
  linear->deallocate_weights();
  EXPECT(!linear->weights_on_device() && held(d) <= before + 64 * 1024);
  EXPECT(linear->report().fallbacks.empty() && is_usage([&] { (*linear)({random_tensor({3, 5}, 1)}); }));

  // A whole attention module, by the class that the file names.
  const TorchModule attention = TorchModule::of(bert, "model.encoder.layer.0.attention");
  EXPECT(attention.children().contains("self") && attention.children().contains("output"));
  EXPECT(is_usage([&] { TorchModule::of(bert, "model.encoder.layer.7"); }));
}

void by_hand(const std::shared_ptr<device::Device>& d) {
  const Tensor x = random_tensor({2, 7, 64}, 3), image = random_tensor({1, 6, 20, 20}, 4);
  const std::vector<std::int64_t> numbers{3, 0, 39, 5};
  const std::pair<TorchModule, Tensor> layers[] = {
      {{"torch.nn.Linear", {{"weight", random_tensor({96, 64}, 5, 0.1F)}, {"bias", random_tensor({96}, 6)}}}, x},
      {{"torch.nn.Linear", {{"weight", random_tensor({33, 64}, 7, 0.1F)}}}, x},
      {{"torch.nn.LayerNorm",
        {{"weight", random_tensor({64}, 8)}, {"bias", random_tensor({64}, 9)}},
        {{"normalized_shape", std::vector<std::int64_t>{64}}, {"eps", 1e-12}}},
       x},
      {{"torch.nn.RMSNorm",
        {{"weight", random_tensor({64}, 10)}},
        {{"normalized_shape", std::vector<std::int64_t>{64}}}},
       x},
      {{"torch.nn.SiLU", {}}, x},
      {{"torch.nn.GELU", {}, {{"approximate", "tanh"}}}, x},
      {{"torch.nn.ReLU", {}}, x},
      {{"torch.nn.Embedding", {{"weight", random_tensor({40, 64}, 11)}}}, Tensor::from(numbers, {2, 2})},
      {{"torch.nn.Conv2d",
        {{"weight", random_tensor({8, 3, 3, 3}, 12, 0.2F)}, {"bias", random_tensor({8}, 13)}},
        {{"stride", 2}, {"padding", 1}, {"groups", 2}}},
       image},
      {{"torch.nn.MaxPool2d", {}, {{"kernel_size", 3}, {"stride", 2}}}, image},
  };
  for (const auto& [source, input] : layers) {
    const Tensor expected = source.forward({input})[0];
    const std::shared_ptr<Module> module = ttrt::from_torch(source);
    module->to_device(d);
    const double error = error_to((*module)({input})[0], expected);
    const ttrt::ModuleReport report = module->report();
    if (error > 0.02 || report.on_device != 1)
      std::printf("%s: error %g, %s\n", source.class_name().c_str(), error,
                  report.fallbacks.empty() ? "" : report.fallbacks[0].reason.c_str());
    EXPECT(error < 0.02 && report.on_device == 1);
    module->deallocate_weights();
  }
  EXPECT((layers[0].first.forward({x})[0].shape() == ttrt::Shape{2, 7, 96}));
  EXPECT((layers[7].first.forward({Tensor::from(numbers, {4})})[0].shape() == ttrt::Shape{4, 64}));
  // The layer and its activation in one operator; on the CPU too.
  const std::shared_ptr<Module> fused = ttrt::from_torch(layers[0].first, "TTNNLinearGelu");
  fused->to_device(d);
  EXPECT(error_to((*fused)({x})[0], layers[5].first.forward(layers[0].first.forward({x}))[0]) < 0.02);
  EXPECT(error_of([] { ttrt::from_torch(TorchModule("torch.nn.Linear", {})); }).kind() == ttrt::Error::Kind::usage);
  EXPECT(is_usage([&] { ttrt::from_torch(layers[0].first, "TTNNLinaer"); }));
  EXPECT(is_usage([] { ttrt::from_torch(TorchModule("mine.Strange", {})); }));
}

// down(silu(gate(x)) * up(x)), with three modules of the library; what it has no device for, it refuses.
class Gated : public Module {
 public:
  explicit Gated(const TorchModule& layer)
      : Module(layer),
        gate_(add_child("gate", child("gate", "TTNNLinearSilu"))),
        up_(add_child("up", child("up", ""))) {}
  bool refuses = false;
  int prepared = 0;

 private:
  std::shared_ptr<Module> child(const std::string& name, const std::string& klass) {
    return ttrt::from_torch(TorchModule("torch.nn.Linear", {{"weight", torch_layer().parameter(name)}}), klass);
  }
  void preprocess_weights_impl() override { ++prepared; }
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    if (refuses) throw ttrt::Error(ttrt::Error::Kind::unsupported, "too wide for this device");
    const Tensor x = inputs[0].to(device());
    return {tt_lib::tensor::mul(gate_({x})[0], up_({x})[0])};
  }
  Module &gate_, &up_;
};

void of_ones_own(const std::shared_ptr<device::Device>& d) {
  const Tensor x = random_tensor({4, 64}, 20);
  // Nothing says what a Gated computes on the CPU, so nothing can fall back.
  Gated gated(TorchModule("mine.Gated",
                          {{"gate", random_tensor({32, 64}, 21, 0.1F)}, {"up", random_tensor({32, 64}, 22, 0.1F)}}));
  gated.to_device(d);
  const Tensor y = gated({x})[0];
  EXPECT(y.is_resident() && (y.shape() == ttrt::Shape{4, 32}) && gated.prepared == 1 && gated.weights_on_device());
  EXPECT(gated.children().at("up")->weights_on_device());
  gated({x});
  EXPECT(gated.prepared == 1 && gated.report().calls == 6 && gated.report().on_device == 6);
  gated.deallocate_weights();
  EXPECT(!gated.children().at("gate")->weights_on_device());
}

void fallbacks(const std::shared_ptr<device::Device>& d) {
  // An operand and a result that are larger than the device's memory: compile refuses, the CPU computes.
  const TorchModule wide("torch.nn.Linear", {{"weight", random_tensor({64, 64}, 30, 0.1F)}});
  const Tensor x = random_tensor({3, 64}, 31);
  class Refusing : public Module {
   public:
    using Module::Module;
    std::vector<Tensor> forward(const std::vector<Tensor>&) override {
      throw ttrt::Error(ttrt::Error::Kind::unsupported, "this device has no such operator");
    }
  } refusing(wide);
  refusing.to_device(d);
  EXPECT(error_to(refusing({x})[0], wide.forward({x})[0]) == 0);
  refusing({x});
  const ttrt::ModuleReport report = refusing.report();
  EXPECT(report.calls == 2 && report.on_device == 0 && report.fallbacks.size() == 1);
  EXPECT(report.fallbacks[0].count == 2 && report.fallbacks[0].klass == "torch.nn.Linear" &&
         report.fallbacks[0].reason.find("no such operator") != std::string::npos);
  refusing.set_fallback(false);
  EXPECT(error_of([&] { refusing({x}); }).kind() == ttrt::Error::Kind::unsupported);
  refusing.set_fallback(true);
  EXPECT(ttrt::set_run_mode("NORMAL"));
  EXPECT(error_of([&] { refusing({x}); }).kind() == ttrt::Error::Kind::unsupported);
  EXPECT(ttrt::set_run_mode("traced") && ttrt::run_mode() == "TRACED");
  EXPECT(error_of([&] { refusing({x}); }).kind() == ttrt::Error::Kind::unsupported);
  EXPECT(ttrt::set_run_mode("cpu"));
  EXPECT(error_to(refusing({x})[0], wide.forward({x})[0]) == 0 && refusing.report().fallbacks[0].count == 2);

  const std::shared_ptr<Module> linear = ttrt::from_torch(wide);
  linear->to_device(d);
  ttrt::set_run_mode("SEL");
  const Tensor y = (*linear)({x})[0];
  EXPECT(linear->report().pcc.at("") > 0.999 && linear->report().pcc.at("") < 1);
  ttrt::set_run_mode("DPL_NO_ERROR_PROP");
  EXPECT(error_to((*linear)({x})[0], wide.forward({x})[0]) == 0 && error_to(y, wide.forward({x})[0]) > 0);
  EXPECT(is_usage([] { ttrt::set_run_mode("SELL"); }));
  setenv("TT_SYMBIOTE_RUN_MODE", "CPU", 1);  // wins
  EXPECT(!ttrt::set_run_mode("NORMAL") && ttrt::run_mode() == "CPU");
  unsetenv("TT_SYMBIOTE_RUN_MODE");
  ttrt::set_run_mode("NORMAL_WITH_FALLBACK");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  unsetenv("TT_SYMBIOTE_RUN_MODE");
  auto d = device::CreateDevice("n150", 5);
  device::InitializeDevice(d);
  device::SetDefaultDevice(d);
  life_cycle(ttrt::Model::load(argv[1]), d);
  by_hand(d);
  of_ones_own(d);
  fallbacks(d);
  device::CloseDevice(d);
  if (failed_lines == 0) std::printf("ok, modules of ttrt %s\n", ttrt::version());
  return failed_lines == 0 ? 0 : 1;
}
