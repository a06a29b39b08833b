// What a Session holds; its dispatch controls (dispatch.cpp) reach it too.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/ttrt.h"
#include "executor/executor.h"
#include "executor/kernel_choice.h"
#include "executor/signature.h"
#include "session/compatibility.h"

namespace ttrt {

struct Session::Impl {
  std::shared_ptr<std::atomic<bool>> cancel = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> running{false};
  std::shared_ptr<KernelChooser> chooser;
  std::unique_ptr<Executor> executor;
  std::vector<UserInput> inputs;
  mutable std::mutex run_mutex;  // of the executor
  SessionOptions options;
  ttc::RunLedger ledger;  // under the run's lock
  std::int64_t runs = 0;
  mutable std::mutex report_mutex;  // of the report alone: never held while a run goes on
  RunReport report;
};

std::vector<MemoryUse> memory_use(const MemoryReport& report);

}  // namespace ttrt
