// What lowerings must not take, and the reason they give: arguments that other tools ignore silently.
#include <algorithm>

#include "torch/cpu_op.h"
#include "ir/model.h"
#include "ops/library.h"
#include "tests/catch.h"

using namespace ttrt;
using ttc::ReasonCode;

namespace {

struct Refused {
  std::string_view graph;  // its first node
  ReasonCode code;
  std::string_view detail;  // part of the reason's text
};

// The reasons of all lowerings of the first node; empty where one takes it.
std::vector<ttc::Reason> reasons(std::string_view graph) {
  install_torch_schemas();
  const auto model = ttc::ir::parse(std::string(graph), "case");
  const ttc::ir::Node& node = *model->graph->nodes().front();
  const LowerOptions options;
  std::vector<ttc::Reason> out;
  for (const auto& [record, lowering] : lowerings_of(node.op())) {
    LowerResult result = ops::lower_node(*record, *lowering, {node, options});
    const auto* reason = std::get_if<ttc::Reason>(&result);
    if (reason == nullptr) return {};
    out.push_back(*reason);
  }
  return out;
}

constexpr Refused refused[] = {
    {R"(graph main(%x: c64[3, 40] user) {
  %y: c64[3, 40] = aten.relu.default(%x)
  return %y
})",
     ReasonCode::DtypeUnsupported, "complex64"},
    {R"(graph main(%x: u8[3, 40] user, %z: u8[3, 40] user) {
  %y: u8[3, 40] = aten.add.Tensor(%x, %z)
  return %y
})",
     ReasonCode::DtypeUnsupported, "uint8"},
    {R"(graph main(%x: i64[3, 40] user) {
  %y: bool[3, 40] = aten.gt.Scalar(%x, 0.5)
  return %y
})",
     ReasonCode::DtypeUnsupported, "a number that is none"},
    {R"(graph main(%x: i64[3, 40] user) {
  %y: i64[3, 40] = aten.add.Tensor(%x, 4294967296)
  return %y
})",
     ReasonCode::DtypeUnsupported, "does not fit int32"},
    {R"(graph main(%x: i64[3, 40] user, %f: f32[40] user) {
  %y: bool[3, 40] = aten.lt.Tensor(%x, %f)
  return %y
})",
     ReasonCode::DtypeUnsupported, "operands of"},
    {R"(graph main(%x: f32[3, 40] user) {
  %y: i64[3, 40] = aten.to.dtype(%x, i64)
  return %y
})",
     ReasonCode::DtypeUnsupported, "fraction is cut"},
    {R"(graph main(%x: i64[3, 40] user) {
  %y: u32[3, 40] = aten.to.dtype(%x, u32)
  return %y
})",
     ReasonCode::DtypeUnsupported, "which wraps"},
    {R"(graph main(%x: f16[3, 40] user) {
  %y: f32[3, 40] = aten._softmax.default(%x, dim=1, half_to_float=true)
  return %y
})",
     ReasonCode::Unsupported, "half_to_float"},
    {R"(graph main(%x: f32[3, 40] user, $w: f32[40] parameter "w" = rand(1), $b: f32[40] parameter "b" = rand(2)) {
  %y: f32[3, 40], %m: f32[3, 1], %r: f32[3, 1] = aten.native_layer_norm.default(%x, [40], $w, $b, 1e-05)
  return %y, %m
})",
     ReasonCode::Unsupported, "result 1 is used"},
    {R"(graph main(%x: f32[3, 4, 5] user) {
  %y: f32[3, 4, 5] = aten.layer_norm.default(%x, [4, 5])
  return %y
})",
     ReasonCode::RankUnsupported, "2 dims"},
    {R"(graph main(%x: f32[3, 40] user, %w: f32[40] user) {
  %y: f32[3, 40] = aten.layer_norm.default(%x, [40], %w)
  return %y
})",
     ReasonCode::NonConstantWeight, "weight"},
    {R"(graph main(%q: f32[1, 2, 5, 32] user) {
  %y: f32[1, 2, 5, 32] = aten.scaled_dot_product_attention.default(%q, %q, %q, dropout_p=0.1)
  return %y
})",
     ReasonCode::Unsupported, "dropout_p"},
    {R"(graph main(%q: f32[1, 4, 5, 32] user, %k: f32[1, 2, 5, 32] user) {
  %y: f32[1, 4, 5, 32] = aten.scaled_dot_product_attention.default(%q, %k, %k)
  return %y
})",
     ReasonCode::Unsupported, "heads that broadcast"},
    {R"(graph main(%q: f32[5, 32] user) {
  %y: f32[5, 32] = aten.scaled_dot_product_attention.default(%q, %q, %q)
  return %y
})",
     ReasonCode::RankUnsupported, "query"},
    {R"(graph main(%a: f32[40] user, %b: f32[40] user) {
  %y: f32[] = aten.matmul.default(%a, %b)
  return %y
})",
     ReasonCode::RankUnsupported, "vector"},
    {R"(graph main(%x: f32[s0, 40] user) {
  %a: f32[2, 40], %b: f32[2, 40] = aten.chunk.default(%x, 2)
  return %a
})",
     ReasonCode::DynamicShape, "split"},
    {R"(graph main(%x: bool[*] user) {
  %y: bool[*] = aten.logical_not.default(%x)
  return %y
})",
     ReasonCode::DynamicShape, "rank is not known"},
    {R"(graph main(%x: f32[3, 4] user) {
  %y: bool[3, 4] = aten.bitwise_not.default(%x)
  return %y
})",
     ReasonCode::DtypeUnsupported, "not bool"},
};

}  // namespace

TEST_CASE("lowerings refuse what the device would compute wrongly") {
  for (const Refused& c : refused) {
    INFO(c.graph);
    const auto given = reasons(c.graph);
    REQUIRE_FALSE(given.empty());
    const bool found = std::any_of(given.begin(), given.end(), [&](const ttc::Reason& reason) {
      return reason.code == c.code && reason.detail.find(c.detail) != std::string::npos;
    });
    for (const ttc::Reason& reason : given) UNSCOPED_INFO(reason.text());
    CHECK(found);
  }
}

TEST_CASE("chunks are ATen's: fewer where the pieces run out") {
  install_torch_schemas();
  const auto model = ttc::ir::parse(R"(graph main(%x: f32[6, 33] user) {
  %a: f32[2, 33], %b: f32[2, 33], %c: f32[2, 33] = aten.chunk.default(%x, 4)
  return %a
})",
                                    "case");
  const auto lowerings = lowerings_of("aten.chunk.default");
  REQUIRE(lowerings.size() == 1);
  const LowerOptions options;
  const LowerResult result = lowerings[0].second->lower({*model->graph->nodes().front(), options});
  const auto* lowered = std::get_if<Lowered>(&result);
  REQUIRE(lowered != nullptr);
  CHECK(lowered->args.at(1).integers() == std::vector<std::int64_t>{2, 2, 2});
}
