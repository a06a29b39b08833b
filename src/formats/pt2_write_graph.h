// IR graphs -> the graph JSON of .pt2 files.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/pt2_tables.h"
#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

// {tag: value}, as these files write unions.
Json tagged(const char* tag, Json value);
// What is the same of every tensor: they are stored densely for the host.
Json host_device();

// Takes a graph's JSON in parts, in this order, as they are made: a tree of all of it would be ten times its text.
// `types`: of the values that the part adds to the tables.
class Pt2GraphParts {
 public:
  virtual ~Pt2GraphParts() = default;
  virtual void expect(std::size_t /*values*/) {}  // about so many, before the parts
  // `spec` and `specs`: what the signature says of it or of each, of the main graph.
  virtual void input(Json input, Pt2TypeEntries types, Json spec) = 0;
  virtual void node(Json node, Pt2TypeEntries types) = 0;
  virtual void outputs(Json outputs, Json specs) = 0;
};

// One writer serves one model. Throws ttc::Error (unsupported) for what the format cannot express.
class Pt2GraphWriter {
 public:
  explicit Pt2GraphWriter(const ir::Model& model);

  void graph(Pt2GraphParts& parts);  // the main graph; first of the two
  Json range_constraints();          // of every symbol that graph() used

 private:
  // The names of one graph, and the entries of its tables that no part has taken along yet.
  struct Scope {
    const ir::Graph& graph;
    Pt2TypeEntries types = {};
    std::unordered_set<std::string> names;
    std::map<std::string, int> tried = {};  // how many numbers behind a name are taken
    Pt2TypeEntries take_types() { return std::exchange(types, {}); }
  };

  void write_graph(const ir::Graph& graph, Pt2GraphParts& parts);
  void declare(Scope& scope, const ir::Value& value);
  Json write_node(Scope& scope, const ir::Node& node, const ir::Provenance& where);
  Json inputs_by_schema(Scope& scope, const ir::Node& node);
  Json inputs_in_order(Scope& scope, const ir::Node& node);
  Json results(const ir::Node& node);
  Json metadata(const ir::Node& node, const ir::Provenance& from);
  Json argument(Scope& scope, const ir::Node* node, const ir::Arg& arg, std::string_view type = {});
  Json list_argument(Scope& scope, const ir::Node* node, const ir::Arg::List& list, std::string_view type);
  Json copied_output(Scope& scope, const ir::GraphOutput& output, Pt2GraphParts& parts);
  Json value_argument(const ir::Value& value);
  Json region_argument(Scope& scope, const ir::Node& node, int index);
  std::shared_ptr<const Pt2Type> tensor_type(const ir::Value& value);
  Json tensor_meta(const ir::Value& value);
  Json sym_int(const ir::SymExpr& expr);
  Json sym_expr(const ir::SymExpr& expr);
  Json input_spec(const ir::GraphInput& input);
  Json output_spec(const ir::GraphOutput& output);
  std::vector<const ir::GraphOutput*> ordered_outputs(const ir::Graph& graph) const;
  std::string unique(Scope& scope, std::string_view stem);
  const std::string& name_of(const ir::Value& value) const { return names_.at(&value); }
  std::string fresh_symbol(const char* prefix);
  static Error cannot_write(const ir::Node* node, const std::string& what);

  const ir::Model& model_;
  ir::SymBinding hints_;
  std::set<std::string> symbols_;
  std::unordered_map<const ir::Value*, std::string> names_;
  std::unordered_map<std::string, std::shared_ptr<const Pt2Type>> tensor_types_;
  int next_unbacked_ = 0;
  bool names_library_ = false;
  std::map<const ir::GraphOutput*, std::string> copies_;
};

// By node of a graph what is written of it: its own, or for one that no module made, a transfer, the modules around it,
// which the nodes before and after it both stand in. torch.export.unflatten takes it for a part of the module before it
// otherwise, whose other calls then miss it.
std::vector<std::shared_ptr<const ir::Provenance>> written_provenance(const ir::Graph& graph);

}  // namespace ttc
