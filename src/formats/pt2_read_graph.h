// The graph part of a .pt2's JSON: values with their types, nodes in order, nested graphs as regions.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "formats/pt2_tables.h"
#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

// Reads graph JSON into a model. One reader serves one model: value names stay unique over all its graphs.
class Pt2GraphReader {
 public:
  explicit Pt2GraphReader(ir::Model& model) : model_(model) {}

  // The main graph; `signature` tells what each input and output stands for. Throws ttc::Error (bad_file) naming the
  // node or value at fault: an undefined or later defined value, a second definition, a malformed argument.
  void read(const Json& graph, const Json& signature);
  // The same in parts, of JSON that need not outlive the call. `types`: those of the part's values. Names of values may
  // differ where nested graphs have the same.
  void expect(std::size_t values) { main_.values.reserve(values); }  // about so many of them
  void read_input(const Json& input, const Pt2TypeEntries& types, const Json& spec);
  void read_node(const Json& node, const Pt2TypeEntries& types);
  void read_outputs(const Json& outputs, const Json& specs);

 private:
  // The names of one graph; each nested graph has its own.
  struct Scope {
    ir::Graph& graph;
    const Json* json;                       // of a graph that is read at once
    const Pt2TypeEntries* types = nullptr;  // of the values of a part, in place of the graph's tables
    std::unordered_map<std::string, ir::Value*> values;
    std::unordered_set<std::string_view> defined_later;
    int depth = 0;
  };

  void reserve_names(const Json& graph);
  void read_graph(Scope& scope, const Json* input_specs, const Json* output_specs);
  void read_inputs(Scope& scope, const Json& inputs, const Json* input_specs);
  void read_input(Scope& scope, const Json& argument, const Json* spec, std::size_t index);
  void read_outputs(Scope& scope, const Json& outputs, const Json* output_specs);
  void read_node(Scope& scope, const Json& json);
  void read_results(Scope& scope, ir::Node& node, const Json& outputs);
  void read_result(Scope& scope, ir::Node& node, const Json& argument);
  void read_region(Scope& outer, ir::Node& node, const Json& graph_argument);

  ir::Arg read_argument(Scope& scope, const Json& json, std::vector<const Json*>& regions, int first_region);
  ir::Arg read_sym(Scope& scope, const Json& json);
  ir::Value* find_value(const Scope& scope, const std::string& name) const;
  void define(Scope& scope, const std::string& name, ir::Value* value);
  std::string fresh_name(const Scope& scope, const std::string& name);
  ir::Type type_of(const Scope& scope, const std::string& name, std::string_view kind);
  static const Json* find_type(const Scope& scope, const char* table, const std::string& name);
  const ir::Type& shared_type(const std::shared_ptr<const Pt2Type>& type);
  ir::Type tensor_type(const Json& meta);
  ir::SymExpr dimension(const Json& json);
  ir::SymExpr expression(const Json& json);
  std::shared_ptr<const ir::Provenance> provenance(const Json& node);

  ir::Model& model_;
  Scope main_{.graph = *model_.graph, .json = nullptr, .values = {}, .defined_later = {}};  // that comes in parts
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> last_suffix_;
  std::unordered_map<std::string, ir::SymExpr> expressions_;
  std::unordered_map<std::string, std::shared_ptr<const ir::Provenance>> provenances_;
  std::unordered_map<std::shared_ptr<const Pt2Type>, ir::Type> shared_types_;  // of tensors, of parts
};

// Where in the user's code a node was made: "bert.py:212", from the innermost frame of a stack trace that is not
// inside torch; "" where there is none.
std::string source_of_trace(std::string_view stack_trace);
// "key,path,class;..." of the exporter, root first: stack and calls, which the keys end in ("L__self__fc@1").
void read_module_stack(std::string_view text, ir::Provenance& to);

}  // namespace ttc
