// Replay of data movement: what the device's own plans (device/move.h) do with a tensor brought in and out by the
// layout code. Values stay, so every case must be bit-exact.
#include <cstring>

#include "device/move.h"
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

TensorSpec spec_of(const Tensor& t) { return {.logical = t.shape, .dtype = t.dtype, .layout = t.layout, .memory = {}}; }

HostTensor host_of(const std::vector<float>& values, const Shape& shape) {
  HostTensor host = empty_host(DType::f32, shape);
  std::memcpy(host.data, values.data(), values.size() * sizeof(float));
  return host;
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> out(static_cast<std::size_t>(spec_of(t).nbytes()));
  tilize_from_host(host_of(t.values, t.shape), spec_of(t), out.data());
  return out;
}

std::vector<float> values_of(const TensorSpec& spec, const std::vector<std::byte>& bytes) {
  const HostTensor host = empty_host(DType::f32, spec.logical);
  untilize_to_host(spec, bytes.data(), host);
  return {host.as<float>(), host.as<float>() + host.numel()};
}

std::vector<float> moved(const Move& move, std::span<const std::byte* const> in) {
  std::vector<std::byte> out(static_cast<std::size_t>(move.output().nbytes()));
  move.run(in, out.data());
  return values_of(move.output(), out);
}

Outcome one(const Case& c, const Move& move) {
  const std::vector<std::byte> in = bytes_of(c.input("x"));
  const std::byte* const data = in.data();
  return Outputs{moved(move, std::span(&data, 1))};
}

Outcome reshape(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"shape"})) return *refusal;
  return one(c, plan_reshape(spec_of(c.input("x")), c.expected.at(0).shape));
}

Outcome transpose(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dims", "dim0", "dim1"})) return *refusal;
  const ttc::Json* dims = find_member(c.params, "dims");
  const Shape two =
      dims != nullptr ? integers(*dims) : Shape{as_int(member(c.params, "dim0")), as_int(member(c.params, "dim1"))};
  if (two.size() != 2) return ttc::Reason{ttc::ReasonCode::Unsupported, "transpose swaps two dims"};
  return one(c, plan_transpose(spec_of(c.input("x")), two[0], two[1]));
}

Outcome permute(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"perm", "dims"})) return *refusal;
  const ttc::Json* dims = find_member(c.params, "perm");
  return one(c, plan_permute(spec_of(c.input("x")), integers(dims != nullptr ? *dims : member(c.params, "dims"))));
}

Outcome slice(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"start", "end", "step"})) return *refusal;
  const Shape start = integers(member(c.params, "start")), end = integers(member(c.params, "end"));
  const ttc::Json* given = find_member(c.params, "step");
  const Shape step = given != nullptr ? integers(*given) : Shape(start.size(), 1);
  if (end.size() != start.size() || step.size() != start.size()) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "start, end and step name every dim"};
  }
  Shape count;
  for (std::size_t d = 0; d < start.size(); ++d) {
    if (step[d] <= 0) return ttc::Reason{ttc::ReasonCode::Unsupported, "steps are positive"};
    count.push_back((end[d] - start[d] + step[d] - 1) / step[d]);
  }
  return one(c, plan_slice(spec_of(c.input("x")), start, count, step));
}

// All inputs one after the other; a single one twice, as it was recorded.
Outcome concat(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dim"})) return *refusal;
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;
  for (const Tensor& t : c.inputs) {
    specs.push_back(spec_of(t));
    bytes.push_back(bytes_of(t));
  }
  if (specs.size() == 1) {
    specs.push_back(specs[0]);
    bytes.push_back(bytes[0]);
  }
  std::vector<const std::byte*> data;
  for (const auto& b : bytes) data.push_back(b.data());
  return Outputs{moved(plan_concat(specs, as_int(member(c.params, "dim"))), data)};
}

Outcome to_layout(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"layout"})) return *refusal;
  const std::string& name = ttc::as_string(member(c.params, "layout"));
  for (const Layout layout : {Layout::tile, Layout::row_major}) {
    if (to_string(layout) == name) return one(c, plan_to_layout(spec_of(c.input("x")), layout));
  }
  return ttc::Reason{ttc::ReasonCode::Unsupported, "layout " + name};
}

Outcome embedding(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"ids"})) return *refusal;
  const Tensor& table = c.input("w");
  const Tensor& out = c.expected.at(0);
  Tensor ids{.name = "ids", .shape = {}, .dtype = DataType::uint32, .layout = Layout::row_major, .values = {}};
  for (const ttc::Json& row : as_array(member(c.params, "ids"))) {
    for (const std::int64_t id : integers(row)) ids.values.push_back(static_cast<float>(id));
  }
  ids.shape.assign(out.shape.begin(), out.shape.empty() ? out.shape.end() : out.shape.end() - 1);
  if (volume(ids.shape) != static_cast<std::int64_t>(ids.values.size())) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the ids do not have the output's leading shape"};
  }
  std::vector<std::uint32_t> indices(ids.values.begin(), ids.values.end());
  const std::vector<std::byte> rows = bytes_of(table);
  const GatherRows gather(spec_of(table), spec_of(ids), out.dtype, out.layout);
  std::vector<std::byte> bytes(static_cast<std::size_t>(gather.output().nbytes()));
  gather.run(rows.data(), reinterpret_cast<const std::byte*>(indices.data()), bytes.data());
  return Outputs{values_of(gather.output(), bytes)};
}

// x [B, 1, S, W] as [B, S, W]: the queries' columns, then the keys', then the values'.
Outcome create_qkv_heads(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"num_heads", "num_kv_heads", "transpose_k_heads"})) return *refusal;
  const Tensor& x = c.input("x");
  const std::int64_t heads = as_int(member(c.params, "num_heads"));
  const ttc::Json* grouped = find_member(c.params, "num_kv_heads");
  const std::int64_t kv_heads = grouped != nullptr ? as_int(*grouped) : heads;
  const ttc::Json* turned = find_member(c.params, "transpose_k_heads");
  const bool transposed = turned != nullptr && ttc::as_bool(*turned);
  if (x.shape.size() != 4 || x.shape[1] != 1 || heads <= 0 || kv_heads <= 0 ||
      x.shape[3] % (heads + 2 * kv_heads) != 0) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "heads are cut from [B, 1, S, W]"};
  }
  const std::int64_t dim = x.shape[3] / (heads + 2 * kv_heads);
  TensorSpec flat = spec_of(x);
  flat.logical = {x.shape[0], x.shape[2], x.shape[3]};
  const std::vector<std::byte> bytes = bytes_of(x);
  const std::byte* const data = bytes.data();
  Outputs out;
  for (const HeadSlice& part : {HeadSlice{heads, dim, 0, false}, HeadSlice{kv_heads, dim, heads * dim, transposed},
                                HeadSlice{kv_heads, dim, (heads + kv_heads) * dim, false}}) {
    out.push_back(moved(plan_split_heads(flat, part), std::span(&data, 1)));
  }
  return out;
}

Outcome concat_heads(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({})) return *refusal;
  return one(c, plan_merge_heads(spec_of(c.input("x"))));
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(reshape, "reshape", ttrt::replay::reshape)
TTRT_REGISTER_REPLAY(transpose, "transpose", ttrt::replay::transpose)
TTRT_REGISTER_REPLAY(permute, "permute", ttrt::replay::permute)
TTRT_REGISTER_REPLAY(slice, "slice", ttrt::replay::slice)
TTRT_REGISTER_REPLAY(concat, "concat", ttrt::replay::concat)
TTRT_REGISTER_REPLAY(to_layout, "to_layout", ttrt::replay::to_layout)
TTRT_REGISTER_REPLAY(embedding, "embedding", ttrt::replay::embedding)
TTRT_REGISTER_REPLAY(create_qkv_heads, "nlp_create_qkv_heads", ttrt::replay::create_qkv_heads)
TTRT_REGISTER_REPLAY(concat_heads, "nlp_concat_heads", ttrt::replay::concat_heads)
