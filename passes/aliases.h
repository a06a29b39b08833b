// Which values are views of which tensor, for functionalize.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"
#include "support/reason.h"

namespace ttc {

// A value as a view: `base` seen through the nodes of `chain`, from the base outwards. A tensor that is no view is its
// own base with an empty chain.
struct View {
  ir::Value* base = nullptr;
  std::vector<ir::Node*> chain;
  bool fixed = false;  // some step cannot be repeated: nobody reads it after a later write, or the base has a refusal
};

// Follows views through a model, once, before anything is changed.
class Aliases {
 public:
  explicit Aliases(const ir::Model& model);

  View view_of(ir::Value* value) const;
  // The argument a mutating node writes; -1 where it writes several or none.
  static int written_argument(const ir::Node& node);
  // Why writes to this tensor must stay writes; nullopt where each of them can become a new tensor.
  const Refusal& refusal(ir::Value* base) const;
  bool is_written(const ir::Value* base) const { return written_.contains(base); }

 private:
  void visit(const ir::Graph& graph);
  void visit_write(const ir::Node& node);
  void visit_view(ir::Node& node);
  void escape(const ir::Node& node);
  void check_read(ir::Value* value);
  void check_inputs(const ir::Model& model);
  bool is_last_reader(ir::Node& node) const;
  void refuse(ir::Value* base, ReasonCode code, std::string detail);

  std::unordered_map<ir::Value*, View> views_;
  std::unordered_map<const ir::Value*, std::vector<ir::Value*>> views_of_;  // by base
  std::unordered_map<const ir::Node*, int> order_;                          // of nodes, regions included
  std::unordered_map<ir::Value*, Refusal> refusals_;
  std::unordered_map<const ir::Value*, int> written_;  // by base: how often, so far
  std::unordered_map<ir::Value*, int> taken_;          // by view: how often its base had been written then
  // Tensors that containers, branches and operators nobody knows hold: what these give may be views of them.
  std::unordered_map<ir::Value*, std::string> escaped_;
};

// The operator that computes what an in-place operator writes: aten.add.Tensor of aten.add_.Tensor; "" for other names.
std::string functional_name(std::string_view op);

// The operator that puts a tensor in the place that `view` views: aten.slice_scatter.default, called with the view's
// arguments and the tensor behind the first of them; "" where ATen has none.
std::string scatter_name(const ir::Node& view);

// How a node that views its first operand relates to it.
enum class ViewKind {
  none,     // a new tensor
  same,     // the operand itself: alias, detach, a cast to its own dtype
  view,     // a view of known elements: what is written to it can be put into the tensor behind it
  unknown,  // a view, or sometimes a copy: nobody knows which elements it shares
};
ViewKind view_kind(const ir::Node& node);

}  // namespace ttc
