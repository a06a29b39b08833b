// Replay of data movement: the records' kernels on tensors in the format of the case, and the change of layout, which
// no record has. Values stay, so every case must be bit-exact.
#include <cstring>

#include "device/move.h"
#include "ops/rules.h"
#include "replay/records.h"
#include "replay/replay.h"

namespace ttrt::replay {
namespace {

using ttc::as_array;
using ttc::as_int;
using ttc::find_member;
using ttc::member;

Shape integers(const ttc::Json& list) {
  Shape out;
  for (const ttc::Json& item : as_array(list)) out.push_back(as_int(item));
  return out;
}

Outcome values_of(const RecordCall& call) {
  auto result = call.run(Numerics::exact);
  if (auto* reason = std::get_if<ttc::Reason>(&result)) return std::move(*reason);
  return Outputs{std::move(std::get<Tensor>(result).values)};
}

Outcome reshape(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"shape"})) return *refusal;
  return values_of(
      RecordCall("tt.reshape").stored("x", c.inputs.at(0)).set("size", ops::int_list(c.expected.at(0).shape)));
}

Tensor transposed(const Tensor& x, std::int64_t dim0, std::int64_t dim1) {
  return RecordCall("tt.transpose").stored("x", x).set("dim0", dim0).set("dim1", dim1).result(Numerics::exact);
}

Outcome transpose(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dims", "dim0", "dim1"})) return *refusal;
  const ttc::Json* dims = find_member(c.params, "dims");
  const Shape two =
      dims != nullptr ? integers(*dims) : Shape{as_int(member(c.params, "dim0")), as_int(member(c.params, "dim1"))};
  if (two.size() != 2) return ttc::Reason{ttc::ReasonCode::Unsupported, "transpose swaps two dims"};
  return Outputs{transposed(c.inputs.at(0), two[0], two[1]).values};
}

Outcome permute(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"perm", "dims"})) return *refusal;
  const ttc::Json* dims = find_member(c.params, "perm");
  const Shape order = integers(dims != nullptr ? *dims : member(c.params, "dims"));
  return values_of(RecordCall("tt.permute").stored("x", c.inputs.at(0)).set("dims", ops::int_list(order)));
}

Tensor sliced(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  return RecordCall("tt.slice")
      .stored("x", x)
      .set("dim", dim)
      .set("start", start)
      .set("end", end)
      .set("step", step)
      .result(Numerics::exact);
}

// Of several dims at once: one after the other.
Outcome slice(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"start", "end", "step"})) return *refusal;
  const Shape start = integers(member(c.params, "start")), end = integers(member(c.params, "end"));
  const ttc::Json* given = find_member(c.params, "step");
  const Shape step = given != nullptr ? integers(*given) : Shape(start.size(), 1);
  Tensor x = c.inputs.at(0);
  if (start.size() != x.shape.size() || end.size() != start.size() || step.size() != start.size())
    return ttc::Reason{ttc::ReasonCode::Unsupported, "start, end and step name every dim"};
  for (std::size_t d = 0; d < start.size(); ++d)
    if (start[d] != 0 || end[d] != x.shape[d] || step[d] != 1)
      x = sliced(x, static_cast<std::int64_t>(d), start[d], end[d], step[d]);
  return Outputs{std::move(x.values)};
}

// All inputs one after the other; a single one twice, as it was recorded.
Outcome concat(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dim"})) return *refusal;
  std::vector<const Tensor*> all;
  for (const Tensor& t : c.inputs) all.push_back(&t);
  if (all.size() == 1) all.push_back(all[0]);
  return values_of(RecordCall("tt.concat").stored("xs", all).set("dim", as_int(member(c.params, "dim"))));
}

HostTensor host_of(const Values& values, const Shape& shape) {
  HostTensor host = empty_host(DType::f32, shape);
  std::memcpy(host.data, values.data(), values.size() * sizeof(float));
  return host;
}

Outcome to_layout(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"layout"})) return *refusal;
  const std::string& name = ttc::as_string(member(c.params, "layout"));
  const Tensor& x = c.inputs.at(0);
  for (const Layout layout : {Layout::tile, Layout::row_major}) {
    if (to_string(layout) != name) continue;
    const TensorSpec from{.logical = x.shape, .dtype = x.dtype, .layout = x.layout, .memory = {}};
    std::vector<std::byte> in(static_cast<std::size_t>(from.nbytes()));
    tilize_from_host(host_of(x.values, x.shape), from, in.data());
    const Move move = plan_to_layout(from, layout);
    std::vector<std::byte> out(static_cast<std::size_t>(move.output().nbytes()));
    const std::byte* const data = in.data();
    move.run(std::span(&data, 1), out.data());
    const HostTensor host = empty_host(DType::f32, x.shape);
    untilize_to_host(move.output(), out.data(), host);
    return Outputs{{host.as<float>(), host.as<float>() + host.numel()}};
  }
  return ttc::Reason{ttc::ReasonCode::Unsupported, "layout " + name};
}

// The ids are the first input, or a parameter of lists of them.
Outcome embedding(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"ids", "layout"})) return *refusal;
  Tensor table = c.input("w");
  while (table.shape.size() > 2 && table.shape[0] == 1) table.shape.erase(table.shape.begin());
  const Tensor& out = c.expected.at(0);
  std::vector<float> ids;
  if (const ttc::Json* given = find_member(c.params, "ids")) {
    for (const ttc::Json& row : as_array(*given))
      for (const std::int64_t id : integers(row)) ids.push_back(static_cast<float>(id));
  } else {
    ids = c.input("ids").values;
  }
  const Shape shape(out.shape.begin(), out.shape.empty() ? out.shape.end() : out.shape.end() - 1);
  if (volume(shape) != static_cast<std::int64_t>(ids.size()))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the ids do not have the output's leading shape"};
  return values_of(RecordCall("tt.embedding")
                       .set("indices", host_integers(ids, shape))
                       .stored("weight", table)
                       .set("weight_shape", ops::int_list(table.shape))
                       .set("weight_format", std::string(to_string(table.dtype)))
                       .set("format", std::string(to_string(out.dtype))));
}

// x [B, 1, S, W] or [B, S, W]: the queries' columns, then the keys', then the values'. One spelling of it turns the
// keys round unless told otherwise.
Outcome create_qkv_heads(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"num_heads", "num_kv_heads", "transpose_k_heads", "transpose_key"}))
    return *refusal;
  Tensor x = c.inputs.at(0);
  if (x.shape.size() == 4 && x.shape[1] == 1) x.shape.erase(x.shape.begin() + 1);
  const bool split = c.op == "split_query_key_value_and_split_heads";
  const ttc::Json* turned = find_member(c.params, split ? "transpose_key" : "transpose_k_heads");
  RecordCall call("tt.split_query_key_value_and_heads");
  call.stored("x", x)
      .set("num_heads", as_int(member(c.params, "num_heads")))
      .set("transpose_key", turned != nullptr ? ttc::as_bool(*turned) : split);
  if (const ttc::Json* grouped = find_member(c.params, "num_kv_heads")) call.set("num_kv_heads", as_int(*grouped));
  return record_outcome(call, c.expected, numerics);
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(reshape, "reshape", ttrt::replay::reshape)
TTRT_REGISTER_REPLAY(transpose, "transpose", ttrt::replay::transpose)
TTRT_REGISTER_REPLAY(permute, "permute", ttrt::replay::permute)
TTRT_REGISTER_REPLAY(slice, "slice", ttrt::replay::slice)
TTRT_REGISTER_REPLAY(concat, "concat", ttrt::replay::concat)
TTRT_REGISTER_REPLAY(to_layout, "to_layout", ttrt::replay::to_layout)
TTRT_REGISTER_REPLAY(embedding, "embedding", ttrt::replay::embedding, "ids w")
TTRT_REGISTER_REPLAY(create_qkv_heads, "nlp_create_qkv_heads", ttrt::replay::create_qkv_heads)
TTRT_REGISTER_REPLAY(split_qkv, "split_query_key_value_and_split_heads", ttrt::replay::create_qkv_heads)
