// The parts of dispatch built by hand from the installed headers: the table by device, dtype, layout, autograd and
// quantization with its fallback order, the static dispatcher and its builder, the orchestrator and its modes.
#include <ttc/dispatch/operation_type.h>
#include <ttc/dispatch/orchestrator.h>
#include <ttc/dispatch/static_dispatcher.h>
#include <ttc/dispatch/table.h>

#include "expect.h"

namespace {

namespace d = ttrt::dispatch;

// A kernel that gives a number.
d::KernelSpec gives(const char* id, const char* operation, std::int64_t number) {
  d::KernelSpec spec;
  spec.id = d::Symbol(id);
  spec.operation = d::Symbol(operation);
  spec.platform = d::Platform::cpu;
  spec.impl = [number](d::CallArgs& args) {
    if (args.output != nullptr) *args.output = ttrt::RtValue(number);
  };
  return spec;
}

std::int64_t number(const ttrt::RtValue& value) {
  return value.get_if<std::int64_t>() ? *value.get_if<std::int64_t>() : -1;
}

void table() {
  d::DispatchTable table("example.norm");
  table.add({}, gives("anything", "example.norm", 1));
  table.add({.dtype = ttrt::DType::bf16}, gives("bfloat16", "example.norm", 2));
  table.add({.device = d::Platform::cuda, .dtype = ttrt::DType::bf16}, gives("cuda bfloat16", "example.norm", 3));
  const d::TableKey on_cpu{.device = d::Platform::cpu, .dtype = ttrt::DType::bf16};
  EXPECT(table.at({}).id.text() == "anything" && table.origin({}).step == d::FillStep::catch_all);
  EXPECT(table.at(on_cpu).id.text() == "bfloat16" && table.kernels(on_cpu).size() == 2);
  EXPECT(table.remove(d::Symbol("bfloat16")) && table.at(on_cpu).id.text() == "anything");
  ttrt::RtValue out;
  d::CallArgs args{.output = &out};
  table.call({.device = d::Platform::cuda, .dtype = ttrt::DType::bf16, .autograd = true}, args);
  EXPECT(number(out) == 3);
  d::DispatchTable empty("example.nothing");
  std::string what;
  try {
    empty.at(on_cpu);
  } catch (const ttc::Error& error) {
    what = error.what();
  }
  EXPECT(what.find("example.nothing") != std::string::npos && what.find("bfloat16") != std::string::npos);
}

void fixed() {
  const auto dispatcher = d::StaticDispatcherBuilder()
                              .with_kernel(gives("slow", "rms_norm", 1))
                              .with_kernel(gives("chosen", "rms_norm", 2), {}, true)
                              .build();
  EXPECT(dispatcher->registry().frozen() && dispatcher->registry().kernel_count() == 2);
  EXPECT(d::get_operation_type("rms_norm") == d::OperationType::NORM_RMS);
  d::CallArgs args;
  EXPECT(number(dispatcher->dispatch(d::Symbol("norm.rms"), args).output) == 2);  // another name of the same type
}

void modes() {
  d::KernelRegistry kernels;
  kernels.add(gives("first", "example.op", 1));
  kernels.add(gives("second", "example.op", 2));
  d::Orchestrator orchestrator(
      d::DispatchConfig({.mode = d::DispatchMode::AUTO, .static_kernel_map = {{"example.op", "second"}}}), kernels);
  const d::Symbol op("example.op");
  d::SelectionContext context;
  context.operation = op;
  d::CallArgs args;
  EXPECT(orchestrator.resolve(op, d::DispatchMode::AUTO) == d::DispatchMode::STATIC);
  EXPECT(number(orchestrator.dispatch(op, args, &context).output) == 2);
  EXPECT(number(orchestrator.dispatch(op, args, &context, d::DispatchMode::DYNAMIC).output) == 1);  // this call alone
  orchestrator.reload_config(d::DispatchConfig({.mode = d::DispatchMode::DYNAMIC}));
  EXPECT(number(orchestrator.dispatch(op, args, &context).output) == 1);
  EXPECT(d::global_orchestrator() != nullptr);
}

}  // namespace

int main() {
  table();
  fixed();
  modes();
  if (failed_lines == 0) std::printf("ok, parts of dispatch\n");
  return failed_lines == 0 ? 0 : 1;
}
