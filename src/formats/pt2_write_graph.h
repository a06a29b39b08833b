// IR graphs -> the graph JSON of .pt2 files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

// One writer serves one model. Throws ttc::Error (unsupported) for what the format cannot express.
class Pt2GraphWriter {
 public:
  explicit Pt2GraphWriter(const ir::Model& model);

  Json graph();              // the main graph; first of the three
  Json signature();          // after graph(), parallel to its inputs and outputs
  Json range_constraints();  // of every symbol that graph() used

 private:
  // The names and value tables of one graph.
  struct Scope {
    const ir::Graph& graph;
    Json json = Json::object();
    std::set<std::string> names;
    std::map<std::string, int> tried = {};  // how many numbers behind a name are taken
  };

  Json write_graph(const ir::Graph& graph);
  void declare(Scope& scope, const ir::Value& value);
  Json write_node(Scope& scope, const ir::Node& node);
  Json inputs_by_schema(Scope& scope, const ir::Node& node);
  Json inputs_in_order(Scope& scope, const ir::Node& node);
  Json results(const ir::Node& node);
  Json metadata(const ir::Node& node);
  Json argument(Scope& scope, const ir::Node* node, const ir::Arg& arg, std::string_view type = {});
  Json list_argument(Scope& scope, const ir::Node* node, const ir::Arg::List& list, std::string_view type);
  Json copied_output(Scope& scope, const ir::GraphOutput& output, Json& nodes);
  Json value_argument(const ir::Value& value);
  Json region_argument(Scope& scope, const ir::Node& node, int index);
  Json tensor_meta(const ir::Value& value);
  Json sym_int(const ir::SymExpr& expr);
  Json sym_expr(const ir::SymExpr& expr);
  Json input_spec(const ir::GraphInput& input);
  Json output_spec(const ir::GraphOutput& output);
  std::vector<const ir::GraphOutput*> ordered_outputs(const ir::Graph& graph) const;
  std::string unique(Scope& scope, std::string_view stem);
  const std::string& name_of(const ir::Value& value) const { return names_.at(&value); }
  std::string fresh_symbol(const char* prefix);

  const ir::Model& model_;
  ir::SymBinding hints_;
  std::set<std::string> symbols_;
  std::unordered_map<const ir::Value*, std::string> names_;
  int next_unbacked_ = 0;
  bool names_library_ = false;
  std::map<const ir::GraphOutput*, std::string> copies_;
};

}  // namespace ttc
