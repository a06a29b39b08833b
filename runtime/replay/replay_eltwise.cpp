// Replay of arithmetic, maximum, minimum and comparisons of two tensors, with row, column and scalar operands: the op
// records' kernels (runtime/ops/binary.cpp).
#include "replay/records.h"

namespace ttrt::replay {
namespace {

struct Spelling {
  const char* op;
  const char* record;
};
constexpr Spelling spellings[] = {{"add", "tt.add"},    {"subtract", "tt.sub"},    {"multiply", "tt.mul"},
                                  {"divide", "tt.div"}, {"maximum", "tt.maximum"}, {"minimum", "tt.minimum"},
                                  {"eq", "tt.eq"},      {"ne", "tt.ne"},           {"lt", "tt.lt"},
                                  {"le", "tt.le"},      {"gt", "tt.gt"},           {"ge", "tt.ge"}};

std::string_view record_of(const std::string& op) {
  for (const Spelling& s : spellings) {
    if (op == s.op) return s.record;
  }
  return "";
}

Outcome binary(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"scalar"})) return *refusal;
  RecordCall call(record_of(c.op));
  call.tensor("a", c.input("a"));
  if (const ttc::Json* scalar = ttc::find_member(c.params, "scalar")) {
    call.set("scalar", ttc::as_double(*scalar));
  } else {
    call.tensor("b", c.input("b"));
  }
  for (const Tensor& t : c.inputs) {
    if (!is_float_format(t.dtype)) {
      return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "elementwise arithmetic is on float formats"};
    }
  }
  return record_outcome(call, c.expected.at(0), numerics);
}

const bool registered = [] {
  for (const Spelling& s : spellings) register_runner(s.op, binary);
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
