// What transfers do to dtypes, said once for each pair.
#include "pass/conversions.h"

#include <algorithm>

#include "ops/op.h"

namespace ttc {
namespace {

bool keeps_every_value(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  switch (to) {
    case DType::f32:
      return from == DType::f16 || from == DType::bf16;
    case DType::i32:
      return from == DType::i8 || from == DType::i16 || from == DType::u8;
    default:
      return false;
  }
}

bool wide_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u64 || dtype == DType::u32 || dtype == DType::u16;
}

}  // namespace

std::vector<Conversion> conversions(const ir::Model& model) {
  std::vector<Conversion> out;
  ir::walk(*model.graph, [&](ir::Node* node) {
    const ttrt::Role role = ttrt::role_of(node->op());
    if (!ttrt::is_transfer(role) || node->operands().empty()) return;
    const bool up = role == ttrt::Role::to_device;
    const ir::Type &source = node->operand(0)->type, &made = node->result()->type;
    if (!source.has_dtype || !made.has_dtype) return;
    const DType from = up ? source.dtype : made.dtype, to = up ? made.dtype : source.dtype;
    if (keeps_every_value(from, to)) return;
    const Conversion one{.from = from, .to = to, .checked = wide_integer(from) && is_integral(to)};
    if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
  });
  return out;
}

std::string conversions_text(const ir::Model& model) {
  std::string text;
  for (const Conversion& one : conversions(model))
    text += (text.empty() ? "on the device " : ", ") + std::string(torch_name(one.from)) + " is " +
            std::string(torch_name(one.to)) + (one.checked ? " (checked)" : "");
  return text;
}

}  // namespace ttc
