// Replay of movement whose parameters the records spell otherwise: parts of a tensor, repetition, padding, triangles.
#include "ops/rules.h"
#include "replay/records.h"
#include "replay/replay.h"

namespace ttrt::replay {
namespace {

using ttc::as_int;
using ttc::member;

Shape sizes_of(const ttc::Json& list) {
  Shape out;
  for (const ttc::Json& item : ttc::as_array(list)) out.push_back(as_int(item));
  return out;
}

Outcome all_values(const RecordCall& call) {
  auto results = call.run_all(Numerics::exact);
  if (auto* reason = std::get_if<ttc::Reason>(&results)) return std::move(*reason);
  Outputs out;
  for (Tensor& t : std::get<std::vector<Tensor>>(results)) out.push_back(std::move(t.values));
  return out;
}

std::int64_t size_along(const Tensor& x, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  if (dim < -rank || dim >= rank) throw ttc::usage_error("a dim outside of the tensor");
  return x.shape[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
}

// Into parts of `size` (split) or into a number of parts (chunk); the last may be smaller.
Outcome split(const Case& c, Numerics) {
  const bool chunk = c.op == "chunk";
  if (auto refusal = c.unknown_params({chunk ? "chunks" : "size", "dim"})) return *refusal;
  const Tensor& x = c.inputs.at(0);
  const std::int64_t dim = as_int(member(c.params, "dim")), whole = size_along(x, dim);
  const std::int64_t given = std::max<std::int64_t>(1, as_int(member(c.params, chunk ? "chunks" : "size")));
  const std::int64_t size = chunk ? (whole + given - 1) / given : given;
  Shape parts;
  for (std::int64_t at = 0; at < whole; at += size) parts.push_back(std::min(size, whole - at));
  return all_values(RecordCall("tt.split").stored("x", x).set("sizes", ops::int_list(parts)).set("dim", dim));
}

Outcome expand(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"shape"})) return *refusal;
  const Shape size = sizes_of(member(c.params, "shape"));
  return all_values(RecordCall("tt.expand").stored("x", c.inputs.at(0)).set("size", ops::int_list(size)));
}

// padding: [before, after] of every dim, the first one first; a record has the last one first.
Outcome pad(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"padding", "value"})) return *refusal;
  const ttc::Json& sides = ttc::as_array(member(c.params, "padding"));
  Shape flat;
  for (auto dim = sides.rbegin(); dim != sides.rend(); ++dim)
    for (const std::int64_t side : sizes_of(*dim)) flat.push_back(side);
  RecordCall call("tt.pad");
  if (const ttc::Json* value = ttc::find_member(c.params, "value")) call.set("value", ttc::as_double(*value));
  return all_values(call.stored("x", c.inputs.at(0)).set("pad", ops::int_list(flat)));
}

// Every position of a dim several times.
Outcome repeat_interleave(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"repeats", "dim"})) return *refusal;
  const Tensor& x = c.inputs.at(0);
  const std::int64_t dim = as_int(member(c.params, "dim")), repeats = as_int(member(c.params, "repeats"));
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < size_along(x, dim); ++i) {
    RecordCall call("tt.slice");
    call.stored("x", x).set("dim", dim).set("start", i).set("end", i + 1);
    parts.push_back(call.result(Numerics::exact));
  }
  std::vector<const Tensor*> all;
  for (const Tensor& part : parts)
    all.insert(all.end(), static_cast<std::size_t>(std::max<std::int64_t>(0, repeats)), &part);
  return all_values(RecordCall("tt.concat").stored("xs", all).set("dim", dim));
}

// A product with ones and zeros, as the op library has it.
Outcome triangle(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"diagonal"})) return *refusal;
  const ttc::Json* given = ttc::find_member(c.params, "diagonal");
  const std::int64_t diagonal = given != nullptr ? as_int(*given) : 0;
  Tensor mask = c.inputs.at(0);
  if (mask.shape.size() < 2) return ttc::Reason{ttc::ReasonCode::Unsupported, "a triangle of less than two dims"};
  const std::int64_t cols = mask.shape.back(), rows = mask.shape[mask.shape.size() - 2];
  std::vector<float>& values = mask.values.changed();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t above = at % cols - at / cols % rows;
    values[i] = (c.op == "tril" ? above <= diagonal : above >= diagonal) ? 1.0F : 0.0F;
  }
  return record_outcome(RecordCall("tt.mul").tensor("a", c.inputs.at(0)).tensor("b", mask), c.expected, numerics);
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(split, "split", ttrt::replay::split)
TTRT_REGISTER_REPLAY(chunk, "chunk", ttrt::replay::split)
TTRT_REGISTER_REPLAY(expand, "expand", ttrt::replay::expand)
TTRT_REGISTER_REPLAY(pad, "pad", ttrt::replay::pad)
TTRT_REGISTER_REPLAY(repeat_interleave, "repeat_interleave", ttrt::replay::repeat_interleave)
TTRT_REGISTER_REPLAY(tril, "tril", ttrt::replay::triangle)
TTRT_REGISTER_REPLAY(triu, "triu", ttrt::replay::triangle)
