// One call of an op record on case tensors: the kernel that programs run, bound by name, with schema defaults for what
// is not given. Block formats reach the kernel as bfloat16, which holds them exactly.
#pragma once

#include <string>
#include <string_view>

#include "ops/bind.h"
#include "replay/replay.h"

namespace ttrt::replay {

class RecordCall {
 public:
  explicit RecordCall(std::string_view op, Arch arch = Arch::wormhole);  // aborts where there is no such record
  RecordCall& tensor(std::string_view name, const Tensor& value);
  RecordCall& tensors(std::string_view name, const std::vector<const Tensor*>& values);
  // The same in the case's own format: what only moves values takes blocks too.
  RecordCall& stored(std::string_view name, const Tensor& value);
  RecordCall& stored(std::string_view name, const std::vector<const Tensor*>& values);
  RecordCall& set(std::string_view name, RtValue value);
  // The record's own default configuration replaced by the case's, where the record has the literals.
  RecordCall& configure(const std::optional<ComputeConfig>& config);  // nullopt: as the op library takes it
  bool has(std::string_view name) const;                              // an argument of this name
  const OpRecord& record() const { return record_; }
  const ttc::ir::OpSchema& schema() const { return schema_; }
  // All results, or why the record does not serve this call. Throws ttc::Error on arguments that can never be right.
  std::variant<std::vector<Tensor>, ttc::Reason> run_all(Numerics numerics) const;
  // The first result.
  std::variant<Tensor, ttc::Reason> run(Numerics numerics) const;
  // The same where a refusal is the case's failure: throws ttc::Error.
  Tensor result(Numerics numerics) const;

 private:
  const OpRecord& record_;
  const ttc::ir::OpSchema& schema_;
  Arch arch_;
  std::vector<Keyword> args_;
};

// A case's integers as a host tensor; values of any format as one of float32 or of integers; and back from device
// bytes.
HostTensor host_integers(const Values& values, const Shape& shape);
HostTensor host_values(const Tensor& tensor);
Tensor host_tensor(const TensorSpec& spec, const std::byte* bytes);
// Values that Dest leaves in one format, as the packer leaves them in another.
std::vector<float> packed_as(Tensor values, const Tensor& expected);
// The case of a function that the one of `c` runs on its result x, in the mode that the op library takes there.
Case case_behind(const Case& c, std::string_view function, Tensor x);
// Every result of a record in the format that the case expects.
Outcome record_outcome(const RecordCall& call, const std::vector<Tensor>& expected, Numerics numerics);

}  // namespace ttrt::replay
