// Names and layout of Python text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/arg.h"
#include "ir/sym.h"
#include "ops/emit.h"

namespace ttc::emit {

inline constexpr std::size_t line_width = 100;

// Letters, digits and '_'; never empty, a keyword or a digit first.
std::string identifier(std::string_view text);
// "vit_layer" of "transformers.models.vit.modeling_vit.ViTLayer".
std::string snake_case(std::string_view class_name);
// "layers[0].attention.q_proj" of "layers.0.attention.q_proj", every part an identifier.
std::string attribute_path(std::string_view dotted);
// A symbolic size; "" where a function has no meaning in Python.
std::string symbolic(const ir::SymExpr& expr);
// "torch.float32".
std::string torch_dtype_text(DType dtype);
// The identifiers of a piece of code; attributes and keywords' names too.
std::set<std::string> identifiers(std::string_view code);

// The same code with other names.
std::string renamed(std::string_view code, const std::map<std::string, std::string>& names);

// `targets = call`, broken into a line for each argument where it is too long.
std::string statement(const std::vector<std::string>& targets, const ttrt::Python& call, int indent);

}  // namespace ttc::emit
