// Devices and single operators through the installed library: the program of the TT-Dispatch document, its known issue
// (a device that goes before its tensors), operators on tensors of a device, and dispatchers of the program's own.
#include <ttrt/dispatch.h>
#include <ttrt/tt_lib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "expect.h"

namespace {

namespace device = tt_lib::device;
namespace tensor = tt_lib::tensor;
using ttrt::Tensor;

Tensor ramp(ttrt::Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1]));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 64) / 64;
  return Tensor::from(values, std::move(shape));
}

void document() {
  auto grayskull = device::CreateDevice(device::Arch::GRAYSKULL, 0);
  EXPECT(grayskull->arch() == device::Arch::GRAYSKULL && grayskull->profile() == "e150" && grayskull->pcie_slot() == 0);
  EXPECT(is_usage([&] { ramp({32, 32}).to(grayskull); }));  // not initialised yet
  device::InitializeDevice(grayskull);
  EXPECT(is_usage([&] { device::InitializeDevice(grayskull); }));
  EXPECT(is_usage([] { device::CreateDevice(device::Arch::WORMHOLE, 0); }));  // the slot is taken
  EXPECT(is_usage([] { device::CreateDevice("n15", 1); }));
  const device::Host& host = device::GetHost();
  EXPECT(host.threads() > 0 && !host.isa().empty());

  Tensor out = tensor::softmax(ramp({32, 32}).to(grayskull), -1);
  EXPECT(out.is_resident() && tensor::storage(out) == "bfloat16, TILE, DRAM");
  EXPECT(grayskull->memory()[0].allocated_per_bank > 0);
  const auto rows = out.to(host);
  double sum = 0;
  for (const float p : rows.values<float>().first(32)) sum += p;
  EXPECT(std::abs(sum - 1) < 0.01);
  EXPECT(tensor::relu(ramp({2, 2}).to(grayskull)).to(host).values<float>()[1] == 1.F / 64);

  device::CloseDevice(grayskull);
  EXPECT(grayskull->is_closed() && !grayskull->is_initialized());
  EXPECT(is_usage([&] { device::CloseDevice(grayskull); }));
  const ttrt::Error gone = error_of([&] { out.to(host); });
  EXPECT(gone.kind() == ttrt::Error::Kind::usage && std::string(gone.what()).find("closed") != std::string::npos);
  EXPECT(gone.hint().find("CloseDevice") != std::string::npos);
  EXPECT(is_usage([&] { tensor::relu(out); }));
}

// In the document this ends in a segmentation fault: the device's handle goes while tensors are on it.
void device_goes_first() {
  Tensor out;
  {
    auto d = device::CreateDevice("n150", 3);
    device::InitializeDevice(d);
    out = tensor::exp(ramp({4, 4}).to(d));
  }
  EXPECT(out.is_resident() && is_usage([&] { out.to(device::GetHost()); }));
  auto again = device::CreateDevice("n150", 3);  // the slot is free
  EXPECT(!again->is_initialized());
}

void operators() {
  EXPECT(is_usage([] { device::GetDefaultDevice(); }));
  EXPECT(is_usage([] { tensor::relu(ramp({2, 2})); }));  // no operand on a device, no default device
  auto a = device::CreateDevice(device::Arch::WORMHOLE, 1), b = device::CreateDevice(device::Arch::BLACKHOLE, 2);
  device::InitializeDevice(a);
  device::InitializeDevice(b);
  device::SetDefaultDevice(a);
  EXPECT(device::GetDefaultDevice()->name() == a->name());
  const device::Host& host = device::GetHost();

  const Tensor x = tensor::to(ramp({40, 64}), a, {.format = ttrt::Format::float32});
  EXPECT(tensor::storage(x) == "float32, TILE, DRAM");
  const Tensor y = tensor::matmul(x, tensor::transpose(x, 0, 1));
  EXPECT((y.shape() == ttrt::Shape{40, 40}) && y.is_resident());
  EXPECT(std::abs(y.to(host).values<float>()[0] - 20.84F) < 0.1F);  // the sum of (i / 64)^2
  EXPECT(tensor::add(ramp({2, 2}), 1.0).is_resident());             // brought to the default device
  EXPECT(is_usage([&] { tensor::add(x, ramp({40, 64}).to(b)); }));  // two devices
  const ttrt::Error none = error_of([&] { tensor::op("aten::svd", {x}); });
  EXPECT(none.kind() == ttrt::Error::Kind::unsupported);
  const ttrt::Value several = tensor::op("aten::topk", {x, 2});
  const auto* best = several.get_if<ttrt::Value::List>();
  EXPECT(best != nullptr && best->size() == 2 && ((*best)[1].tensor().shape() == ttrt::Shape{40, 2}));
  EXPECT(best != nullptr && (*best)[1].tensor().to(host).values<std::int64_t>()[0] == 63);
  const Tensor exact = tensor::op("softmax", {x, -1}, {}, ttrt::NumericsMode::exact).tensor();
  EXPECT(exact.to(host).numel() == 2560);

  const std::vector<std::int64_t> numbers{1, -2, 3};
  const Tensor integers = Tensor::from(numbers, {3}).to(a);
  EXPECT(tensor::storage(integers) == "int32, TILE, DRAM");
  EXPECT(integers.to(host).values<std::int64_t>()[1] == -2);
  EXPECT(is_usage([&] { Tensor::from(std::array{std::int64_t{1} << 40}, {1}).to(a); }));
  Tensor freed = ramp({8, 8}).to(a);
  tensor::deallocate(freed);
  EXPECT(is_usage([&] { freed.to(host); }));
  device::CloseDevice(a);
  EXPECT(is_usage([] { device::GetDefaultDevice(); }));
}

// Serves aten::mul itself, leaves everything else to the default dispatcher.
class Tripling : public ttrt::Dispatcher {
 public:
  bool can_dispatch_to_ttnn(const ttrt::OperatorCall& call) const override {
    return call.name == "aten::mul.Tensor" || ttrt::find_dispatcher("default")->can_dispatch_to_ttnn(call);
  }
  ttrt::Value dispatch_to_ttnn(const ttrt::OperatorCall& call) const override {
    if (call.name != "aten::mul.Tensor") return ttrt::find_dispatcher("default")->dispatch_to_ttnn(call);
    std::vector<float> out;
    for (const float v : call.args[0].tensor().values<float>()) out.push_back(3 * v);
    return Tensor::from(out, call.args[0].tensor().shape());
  }
};

void dispatchers() {
  unsetenv("TT_SYMBIOTE_DISPATCHER");
  const auto names = ttrt::list_available_dispatchers();
  for (const char* name : {"default", "optimized", "debug", "cpu", "tensor_ops"})
    EXPECT(std::find(names.begin(), names.end(), name) != names.end());
  const Tensor x = ramp({4, 8});
  EXPECT(ttrt::can_dispatch_to_ttnn("aten::mul.Tensor", {x, x}));
  EXPECT(!ttrt::can_dispatch_to_ttnn("aten::svd", {x}));
  const float square = ttrt::dispatch_to_ttnn("aten::mul.Tensor", {x, x}).tensor().values<float>()[4];
  EXPECT(std::abs(square - 1.F / 256) < 1e-4F);
  EXPECT(ttrt::set_dispatcher("cpu") && !ttrt::can_dispatch_to_ttnn("aten::mul.Tensor", {x, x}));
  ttrt::register_dispatcher("tripling", std::make_shared<Tripling>());
  EXPECT(ttrt::set_dispatcher("tripling") && ttrt::active_dispatcher() == "tripling");
  EXPECT(ttrt::dispatch_to_ttnn("aten::mul.Tensor", {x, x}).tensor().values<float>()[4] == 3 * 4.F / 64);
  EXPECT(ttrt::can_dispatch_to_ttnn("aten::relu", {x}) && !ttrt::can_dispatch_to_ttnn("aten::svd", {x}));
  setenv("TT_SYMBIOTE_DISPATCHER", "cpu", 1);  // wins
  EXPECT(!ttrt::set_dispatcher("default") && ttrt::active_dispatcher() == "cpu");
  unsetenv("TT_SYMBIOTE_DISPATCHER");
  const ttrt::Error unknown = error_of([] { ttrt::set_dispatcher("my_dispatcher"); });
  EXPECT(std::string(unknown.what()).starts_with("Unknown dispatcher 'my_dispatcher'"));
  EXPECT(error_of([] { ttrt::load_dispatcher("/nonexistent.so"); }).kind() == ttrt::Error::Kind::bad_file);
  ttrt::set_dispatcher("default");
}

}  // namespace

int main() {
  document();
  device_goes_first();
  operators();
  dispatchers();
  if (failed_lines == 0) std::printf("ok, devices of ttrt %s\n", ttrt::version());
  return failed_lines == 0 ? 0 : 1;
}
