// What STATIC, DYNAMIC, CONFIG and HOT_RELOAD share: how they choose is theirs, running what was chosen is here, with
// the circuit of the kernel asked before and told after, and what may serve instead where it fails.
//
// One lock guards what a dispatcher knows; it is held while a kernel is chosen, never while one runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "dispatch/choice_cache.h"
#include "dispatch/circuits.h"
#include "dispatch/kernel.h"

namespace ttrt::dispatch {

struct ModeOptions {
  const Clock* clock = &system_clock();
  // Watches over the kernels of this mode, with other modes where they are given the same. None: DYNAMIC makes its own,
  // the others run unguarded.
  std::shared_ptr<CircuitManager> circuits = {};
  Report report = {};  // warnings, and one line per fallback where log_fallbacks is on; none: standard error
};

class ModeDispatcher : public Dispatcher {
 public:
  DispatchMode mode() const final { return mode_; }
  void attempt(Symbol operation, CallArgs& args, const SelectionContext* context, Result& result) final;
  const KernelSpec* choose(Symbol operation, const SelectionContext& context) final {
    return choice_for(operation, nullptr, &context).kernel;
  }
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;

 protected:
  ModeDispatcher(DispatchMode mode, const DispatchConfig& config, ModeOptions options);

  // The mode's choice. `args` is null where nothing is to run: then nothing is counted.
  virtual Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) = 0;
  // For a call that comes without one; none: the mode chooses without.
  virtual std::optional<SelectionContext> make_context(Symbol /*operation*/, const CallArgs& /*args*/) const {
    return std::nullopt;
  }
  // What may serve where the choice cannot, in order; none: the choice's failure is the call's.
  virtual std::optional<std::vector<const KernelSpec*>> alternatives(Symbol /*operation*/,
                                                                     const SelectionContext* /*context*/,
                                                                     const Choice& /*choice*/) {
    return std::nullopt;
  }
  // The call of a choice with a set is over, however it ended.
  virtual void finished(const Choice& /*choice*/) {}
  // The circuit that watches over the kernel; nullptr for none.
  Circuit* circuit_of(const KernelSpec* kernel) const {
    return kernel && guarded_.load(std::memory_order_relaxed) ? &circuits_->circuit(kernel->id) : nullptr;
  }
  void report(const std::string& text) const { report_to(options_.report, text); }

  struct Counts {
    std::int64_t dispatches = 0, fallbacks = 0, errors = 0, selection_ns = 0, execution_ns = 0, total_ns = 0;
  };
  // A copy of what is under the lock.
  template <typename T>
  T copy(const T& of) const {
    const std::lock_guard lock(mutex_);
    return of;
  }
  Counts counts() const { return copy(counts_); }
  DispatchConfig config() const { return copy(config_); }
  void count_locked() {
    if (counting_) ++counts_.dispatches;
  }

  const ModeOptions options_;
  const Clock& clock_;
  const std::shared_ptr<CircuitManager> circuits_;  // null: unguarded
  mutable std::mutex mutex_;                        // of what follows and of what a mode adds
  DispatchConfig config_;
  Counts counts_;

 private:
  struct Call {
    const Symbol operation;
    CallArgs& args;
    const SelectionContext* context;
    const Choice& choice;
    Result& result;
  };
  void run(Symbol operation, CallArgs& args, const SelectionContext* context, Result& result);
  void run_choice(Call& call);
  void choice_failed(Call& call, const DispatchError& error);
  void instead_of_choice(Call& call);
  void fall_back(Call& call, std::vector<const KernelSpec*> candidates, const std::string& why,
                 std::vector<TriedKernel> tried);
  void uncount(bool error);
  void take_flags();

  const DispatchMode mode_;
  std::atomic<bool> timing_{true}, guarded_{false};
  bool counting_ = true;
};

}  // namespace ttrt::dispatch
