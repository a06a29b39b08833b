// Integer tensors that count: offset + sum over dims of step * index. aranges, what unsqueeze, expand, slice, cat and
// arithmetic make of them, and constants. Comparisons between such tensors are often decided whatever the sizes are:
// exported models build their masks from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/model.h"

namespace ttc::match {

struct IndexForm {
  std::int64_t offset = 0;
  std::vector<std::int64_t> steps;  // per dim of the value
  bool constant() const;            // the same number everywhere
  bool operator==(const IndexForm&) const = default;
};

class IndexNode;  // a node as the rule for its operator sees it

class IndexForms {
 public:
  explicit IndexForms(const ir::Model& model) : model_(model) {}

  // nullopt: not such a tensor. Booleans are 0 and 1.
  std::optional<IndexForm> of(const ir::Value* value);
  bool always_true(const ir::Value* value);

 private:
  friend class IndexNode;
  std::optional<IndexForm> compute(const ir::Value* value, int depth);
  std::optional<IndexForm> of_weight(const ir::Value* value);
  std::optional<IndexForm> of_node(const ir::Node& node, int depth);
  std::optional<IndexForm> find(const ir::Arg& arg, int depth, int rank);

  const ir::Model& model_;
  std::map<const ir::Value*, std::optional<IndexForm>> known_;
};

}  // namespace ttc::match
