// One run: inputs into the plan's frame, the instructions one after the other, outputs out of it.
#pragma once

#include <map>
#include <vector>

#include "executor/buffers.h"
#include "executor/plan.h"
#include "executor/profiler.h"

namespace ttrt {

struct ExecutorOptions;

// What the runs of one executor share.
struct RunEnvironment {
  const ttc::ir::Model& model;
  const Program& program;
  const ExecutorOptions& options;
  Device* device;  // nullptr in cpu mode and where no node needs it
  BufferStore& buffers;
  Profiler& profiler;
  const Observer& observer;
  const Shadow& shadow;
  bool references_stay;
  std::map<int, FallbackFailure>& failures;       // by instruction index, over all runs
  std::vector<std::optional<DataType>>& formats;  // StepContext::formats
  // Instructions move in the constants that they read, each by itself, and give their memory back.
  bool on_demand = false;
  bool counts_moves = false;  // and that is what is counted; else it is a plan's recording run
};

// Throws Cancelled where options.cancel says so, RangeError where the device cannot hold an integer; the frame then
// holds half a run.
class Runner {
 public:
  // Counts the run into `work`.
  Runner(const RunEnvironment& environment, Plan& plan, RunWork& work);

  void set_up();  // the constant instructions, in the plan's frame
  // As Executor::run(). Buffers and inputs are written at the end, when nothing can fail any more.
  std::vector<RtValue> run(const std::vector<RtValue>& inputs, const std::vector<bool>& keep);

 private:
  void choose_kept(const std::vector<RtValue>& inputs, const std::vector<bool>& keep);
  const KeepableOutput* kept(std::size_t output) const;  // nullptr where it goes to the host
  void bind_inputs(const std::vector<RtValue>& inputs);
  std::vector<RtValue> take_outputs(const std::vector<RtValue>& inputs);
  void write_back(const std::vector<RtValue>& values, const std::vector<RtValue>& inputs);

  void run_block(const Region& block);
  const SettledOp* settled(const Region& block) const;  // parallel to its instructions; nullptr: none is
  // False where the instruction has to run as any other.
  bool run_settled(std::size_t position, const Instruction& instruction);
  bool run_together(const Together& together);  // false: nothing ran
  // Whether a buffer that an instruction brought into the program is what it was when the plan settled.
  bool holds(const SettledOp& op, const Instruction& instruction) const;
  bool allowed(const SettledOp& op);
  void count(const SettledOp& op);
  void execute(const Instruction& instruction);
  void execute_counted(const Instruction& instruction);  // by the profiler, where it is on
  void execute_host(const Instruction& instruction);
  void send(const Instruction& instruction);   // tt.to_device
  void fetch(const Instruction& instruction);  // tt.to_host
  void assign(const Instruction& instruction, std::vector<RtValue>& results);
  // streaming.cpp
  void move_in(const Instruction& instruction);  // as the plan's placement says
  void run_on_demand(const Instruction& instruction);
  void bring(const Instruction& instruction);
  void evict(const Instruction& instruction);
  void close_gaps();

  // control_flow.cpp
  void execute_control(const Instruction& instruction);
  std::vector<RtValue> run_region(const Region& region, std::vector<RtValue> inputs);
  void run_loop(const Instruction& instruction);
  void run_while(const Instruction& instruction);
  void run_map(const Instruction& instruction);
  void run_scan(const Instruction& instruction);
  void run_wrapped(const Instruction& instruction);

  const RunEnvironment& env_;
  Plan& plan_;
  Frame& frame_;  // the plan's
  RunWork& work_;
  bool profiled_;
  std::size_t done_before_ = 0;  // position in main: settled instructions before it are done
  bool unsettled_ = false;       // a settled instruction was served in another way
  const StepContext context_;
  std::vector<const KeepableOutput*> kept_;
};

}  // namespace ttrt
