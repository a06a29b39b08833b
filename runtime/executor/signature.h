// The inputs a model asks for: names, shapes, ranges, guards; and what tells one input signature from another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ops/value.h"

namespace ttrt {

// A user input that the caller gives (those that export turned into constants are not listed).
struct UserInput {
  const ttc::ir::GraphInput* input = nullptr;
  std::string name;
};
std::vector<UserInput> user_inputs(const ttc::ir::Model& model);
// Position in user_inputs() of a name of the signature or of the graph, or "inN"; -1 where there is none.
int user_input_index(const ttc::ir::Model& model, std::string_view name);
// Names of the user outputs: out0, out1, ...
std::size_t user_output_count(const ttc::ir::Model& model);
// A value for an integer input that nobody gives: the number the model compares it with most often (a sampling rate, a
// mode), 0 where it compares it with none.
std::int64_t likely_integer(const ttc::ir::Value& input);

// Throws ttc::Error (usage) where `size` of dim `dim` of the input lies outside the range of its symbol.
void check_range(const ttc::ir::Model& model, const std::string& input, std::size_t dim, const std::string& symbol,
                 std::int64_t size);
// Throws ttc::Error (usage) where count, dtypes, shapes, ranges of free dims or guards do not fit; names what is asked.
void check_inputs(const ttc::ir::Model& model, const std::vector<RtValue>& inputs);
// Values of the symbols in the shapes of the inputs; throws like check_inputs where a dim contradicts another.
ttc::ir::SymBinding bind_symbols(const ttc::ir::Model& model, const std::vector<RtValue>& inputs);

// The same for inputs of the same kinds, dtypes, sizes and integers, in the same memory.
std::string signature_key(const std::vector<RtValue>& inputs);

}  // namespace ttrt
