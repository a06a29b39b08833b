// The text of a model's main graph and its signature as a .pt2 has them, made while a second thread reads them back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/pt2_write_graph.h"
#include "support/json_text.h"

namespace ttc {

class Pt2GraphText final : public Pt2GraphParts {
 public:
  // `hashed`: the graph is also read back, as its hash is that of what a reader will see: a .pt2 spells some things in
  // other ways.
  explicit Pt2GraphText(bool hashed);
  ~Pt2GraphText() override;

  void expect(std::size_t values) override;
  void input(Json input, Pt2TypeEntries types, Json spec) override;
  void node(Json node, Pt2TypeEntries types) override;
  void outputs(Json outputs, Json specs) override;

  // Each once, when the parts are there.
  JsonPieces graph();
  JsonPieces signature();
  std::string hash();  // waits for it; "" where none is wanted

 private:
  class ReadBack;
  using Table = std::vector<std::pair<std::string, std::shared_ptr<const Pt2Type>>>;
  void add(const Pt2TypeEntries& types);
  static std::string text_of(Table table);

  std::unique_ptr<ReadBack> read_back_;
  JsonArrayText inputs_, input_specs_, nodes_;
  std::map<std::string_view, Table> tables_;
  std::string outputs_, output_specs_;
};

}  // namespace ttc
