// What kind of thing a node does, whichever of PyTorch's spellings it uses: casts, reshapes, permutations, identities,
// and numbers that hide in constants. Patterns and passes ask here, so that a spelling is listed once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/model.h"

namespace ttc::match {

// The node computes a cast of its first operand to another dtype (or to the same).
bool is_cast(const ir::Node& node);
// The same between floating dtypes.
bool is_float_cast(const ir::Node& node);
// A view of the same elements in the same order: view, reshape, flatten, (un)squeeze, and expand that keeps the count.
bool is_reshape(const ir::Node& node);
// The operand itself, or all of it copied: clone, contiguous, alias, detach, lift.
bool is_copy(const ir::Node& node);
// Gives a view where dtype and strides allow it, and else a copy: reshape, flatten, contiguous, to and their like.
bool may_copy(const ir::Node& node);
// Copies or aliases whose result equals the first operand: clone, contiguous, alias, detach, dropout in inference,
// casts to the same dtype, reshapes and expands to the same shape, slices of everything.
bool is_identity(const ir::Node& node);
// The order of the operand's dims in the result of permute, transpose, t, mT and their like; nullopt for other nodes
// and where the rank is unknown.
std::optional<std::vector<int>> permutation(const ir::Node& node);
// True where the node swaps the last two dims and leaves the others in place.
bool swaps_last_dims(const ir::Node& node);

// The value behind identities; `casts` also looks behind casts between floating dtypes.
ir::Value* strip(ir::Value* value, bool casts = false);
// A literal number; a value that is one number everywhere: a constant of one element, full, zeros, ones, scalar_tensor
// and full_like, also behind casts, expands and reshapes.
std::optional<double> number_of(const ir::Model& model, const ir::Arg& arg);
// The element at this distance, in elements, from the first of a weight whose bytes are known; nullopt for dtypes that
// are no real numbers.
std::optional<double> weight_element(const ir::Weight& weight, std::int64_t index);
// Sizes known and equal, symbolic ones included.
bool same_shape(const ir::Type& a, const ir::Type& b);
// A reduction over the last dim alone that keeps it.
bool reduces_last_dim(const ir::Node& node);
// A dim argument as an index from the front; nullopt where it is no literal.
std::optional<int> dim_argument(const ir::Arg* arg, int rank);

}  // namespace ttc::match
