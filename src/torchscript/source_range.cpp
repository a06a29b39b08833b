// Source ranges: written as one line of source per node, read through LibTorch's map from its own text.
#include "torchscript/source_range.h"

#include <charconv>

#include "ir/node_counts.h"

namespace ttc::ts {
namespace {

constexpr std::string_view mark = " ttc_origins=";

}  // namespace

torch::jit::SourceRange source_range(const ir::Node& node) {
  const std::string& place = node.provenance->source;
  const std::size_t colon = place.rfind(':');
  std::optional<std::string> file;
  std::size_t line = 0;
  if (colon != std::string::npos) {
    file = place.substr(0, colon);
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
  }
  std::string text = node.op();
  if (!node.origins.empty()) text += std::string(mark) + ir::origins_text(node.origins);
  return {std::make_shared<torch::jit::Source>(text, std::move(file), line), 0, text.size()};
}

std::string source_of(const torch::jit::Node& node) {
  const auto original = node.sourceRange().findSourceRangeThatGenerated();
  if (!original) return "";
  const auto location = original->file_line_col();
  if (!location) return "";
  const auto& [file, line, column] = *location;
  if (file.empty()) return "";
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(line);
}

std::vector<int> origins_of(const torch::jit::Node& node) {
  const auto original = node.sourceRange().findSourceRangeThatGenerated();
  if (!original || !original->source()) return {};
  const std::string text = original->source()->text_str().str();
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? std::vector<int>()
                                 : ir::parse_origins(std::string_view(text).substr(at + mark.size()));
}

}  // namespace ttc::ts
