// What rewriting passes share: replacing matched nodes by one, walks, near misses, module globs, views of constants.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/host_tensor.h"
#include "match/kinds.h"
#include "match/pattern.h"
#include "pass/rewriter.h"

namespace ttc {

// One rewrite: `root` and the nodes that served it become one new node of `op`, before `root`, whose results have the
// types and names of root's. Nodes of `matched` that nothing else uses go, and the new node takes their origins.
// nullptr, and nothing changed, where the rewrite limit is reached or where what the nodes read is written in place.
ir::Node* replace_matched(PassContext& context, std::string_view pass, std::string_view rule, ir::Node* root,
                          const std::vector<ir::Node*>& matched, std::string op, std::vector<ir::Arg> args);
// The same as the commit of a rewriter that emitted what the new node reads.
ir::Node* replace_matched(Rewriter& r, std::string_view rule, const std::vector<ir::Node*>& matched, std::string op,
                          std::vector<ir::Arg> args);

// Whether `op` in the place of `root` and of the nodes that served it would change what is read: nodes that go would
// read, later than they do, what is written in place meanwhile; or a written tensor would move to the device.
bool disturbs_writes(const PassContext& context, const ir::Node& root, const std::vector<ir::Node*>& matched,
                     std::string_view op);

// A node with one result, which has a number for a name and no strides.
ir::Value* emit(Rewriter& r, std::string op, std::vector<ir::Arg> args, ir::Type type);
// The constant of the model that has this name; where there is none yet, `view` becomes it. For other views of a
// weight's bytes, which every caller shares.
ir::Value* shared_constant(Rewriter& r, const std::string& name, ir::Weight view);

// The weight's elements, to be read only; keeps their bytes, which it makes where they are not at hand.
ttrt::HostTensor view_of(const ir::Weight& weight);

// Runs `rewrite` on every node of the graph and its regions until it commits nothing more. It may erase the node it is
// given and nodes before it.
void rewrite_all(PassContext& context, void (*rewrite)(PassContext&, ir::Node*));

// Calls f on every node of the graph and of its regions, those of a region before the node they belong to; f may erase
// or replace the node it is given.
void for_each_node(ir::Graph& graph, const std::function<void(ir::Node*)>& f);

// Records a near miss of the pattern that ends in `node` as a refusal; `pattern` is its formula.
void refuse_near_miss(PassContext& context, std::string_view pass, std::string_view pattern, const ir::Node& node,
                      const match::NearMiss& miss);

}  // namespace ttc
