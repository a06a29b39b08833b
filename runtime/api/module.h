// TT modules at run time: what takes the place of an nn.Module, with the life cycle of TT-Symbiote's TTNNModule.
//
//   ttrt::TorchModule source = ttrt::TorchModule::of(ttrt::Model::load("bert.pt2"), "encoder.layer.0.output.dense");
//   std::shared_ptr<ttrt::Module> linear = ttrt::from_torch(source, "TTNNLinearLLama");
//   linear->to_device(device);                            // tt_lib.h
//   std::vector<ttrt::Tensor> y = (*linear)({x});         // weights are prepared and moved there once
//   linear->deallocate_weights();
//
// Modules that `ttc modules` lists are compiled like models: the part of the graph that the nn.Module computed, with
// the passes, kernels and formats of `ttc compile`. A module of one's own derives from Module, as in TT-Symbiote, and
// may hold others. What the device refuses or fails at is computed by the nn.Module itself on the CPU, counted and
// reported.
//
// TT_SYMBIOTE_RUN_MODE, or set_run_mode, says what a call does:
//   NORMAL_WITH_FALLBACK  as above (the default)
//   NORMAL                what the device refuses is an error (TRACED and LIGHTWEIGHT are the same here)
//   CPU                   the nn.Module computes
//   SEL, DPL              both compute, and are compared; the result is the device's
//   DPL_NO_ERROR_PROP     the same, and the result is the nn.Module's, so that no error goes on to the next
// Errors and threads as in ttrt.h; the calls of one module follow one another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tt_lib.h"

namespace ttrt {

// An nn.Module of the user's: of a model file, or by hand. Copies share it.
class TTRT_API TorchModule {
 public:
  // The module at `path` ("encoder.layer.0") of an exported model; "" is all of it. Throws Error: usage where nothing
  // of the model was computed in such a module, with a near name; unsupported for a rewritten model.
  static TorchModule of(const Model& model, const std::string& path);
  // By hand: its class ("torch.nn.Linear"), parameters and buffers by name, and attributes as the class has them
  // ({"eps", 1e-5}, {"stride", 2}).
  TorchModule(std::string class_name, std::map<std::string, Tensor> parameters,
              std::map<std::string, Value> attributes = {});

  const std::string& class_name() const;
  const std::string& path() const;  // "" by hand
  // Floating-point ones are float32 by hand, as the file has them otherwise.
  const std::map<std::string, Tensor>& parameters() const;
  const Tensor& parameter(const std::string& name) const;  // throws Error (usage) where there is none
  bool has(const std::string& parameter) const { return parameters().contains(parameter); }
  const std::map<std::string, Value>& attributes() const;
  // Direct ones, by attribute name ("query"); none by hand.
  std::map<std::string, TorchModule> children() const;
  // What it takes; empty by hand.
  std::vector<TensorInfo> inputs() const;
  // What it computes, in LibTorch on the CPU. Throws Error: usage for inputs that do not fit, unsupported where it was
  // made by hand and no TT module says what its class computes.
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) const;

  struct Impl;
  explicit TorchModule(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// A call that the CPU served, or a device op within it.
struct ModuleFallback {
  std::string module, klass;  // its name in the module that was asked, and its class there
  std::string reason;
  std::int64_t count = 0;
};
struct ModuleReport {
  std::int64_t calls = 0;      // of this module and all within it
  std::int64_t on_device = 0;  // of these, served without a fallback
  std::vector<ModuleFallback> fallbacks;
  // Of SEL and the DPL modes: the lowest PCC of each module's outputs.
  std::map<std::string, double> pcc;
};

class TTRT_API Module {
 public:
  explicit Module(TorchModule torch_layer);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // ---- the life cycle; children follow
  void to_device(const std::shared_ptr<tt_lib::device::Device>& device);
  void preprocess_weights();      // once
  void move_weights_to_device();  // once, until they leave; prepares them before. Throws Error (usage) without device.
  void move_weights_to_host();
  void deallocate_weights();  // the device's memory; the next call moves them there again
  bool weights_on_device() const { return moved_; }
  // As the run mode says. Tensors may lie on the host or the device. Throws Error: usage for inputs that do not fit;
  // what forward() throws where nothing falls back.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);

  void set_fallback(bool on);  // off: what the device refuses or fails at is an error. Children follow.
  ModuleReport report() const;
  const TorchModule& torch_layer() const { return torch_layer_; }
  const std::shared_ptr<tt_lib::device::Device>& device() const { return device_; }
  const std::map<std::string, std::shared_ptr<Module>>& children() const { return children_; }

 protected:
  // Overrides of a module of one's own. The default ones do nothing; children have had theirs before.
  virtual void preprocess_weights_impl() {}
  virtual void move_weights_to_device_impl() {}
  virtual void move_weights_to_host_impl() {}
  virtual void deallocate_weights_impl() {}
  virtual std::vector<Tensor> forward(const std::vector<Tensor>& inputs) = 0;
  // A module that forward() calls: *add_child("up", from_torch(...)).
  Module& add_child(const std::string& name, std::shared_ptr<Module> child);
  // An op within this call that the CPU served; throws Error (unsupported) where nothing falls back.
  void note_fallback(const std::string& reason);

 private:
  void collect(const std::string& name, ModuleReport& out) const;
  std::vector<Tensor> on_device(const std::vector<Tensor>& inputs);

  TorchModule torch_layer_;
  std::shared_ptr<tt_lib::device::Device> device_;
  std::map<std::string, std::shared_ptr<Module>> children_;
  bool prepared_ = false, moved_ = false, fallback_ = true, fell_back_ = false;
  struct State;
  std::unique_ptr<State> state_;
};

// Precision of a module; what is not given is as its class has it.
struct ModuleOptions {
  std::optional<Format> weight_dtype = {}, activation_dtype = {};
  std::optional<Fidelity> fidelity = {};
  std::optional<bool> fp32_acc = {};
};

using ModuleFactory = std::function<std::shared_ptr<Module>(const TorchModule& source, const ModuleOptions& options)>;
struct ModuleClass {
  std::string name;                  // "TTNNLinear"
  std::vector<std::string> classes;  // that it stands for: "torch.nn.Linear", or a name (glob) without its package
  std::string summary = {};
};
// A class of one's own, from a program or a plug-in. Throws Error (usage) where the name is taken.
TTRT_API void register_module_class(const ModuleClass& klass, ModuleFactory from_torch);
// Those registered, and those of `ttc modules`; sorted by name.
TTRT_API std::vector<ModuleClass> module_classes();
// The TT module for a module: of class `name`, or of the first one, those of one's own before the others, that stands
// for the module's class. Throws Error: usage for an unknown name and a class that nothing stands for; what the factory
// throws.
TTRT_API std::shared_ptr<Module> from_torch(const TorchModule& source, const std::string& name = {},
                                            const ModuleOptions& options = {});

// False where the environment holds another mode, which stays. Throws Error (usage) for an unknown mode.
TTRT_API bool set_run_mode(const std::string& mode);
TTRT_API std::string run_mode();  // "SEL"

}  // namespace ttrt
