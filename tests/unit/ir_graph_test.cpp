// Graphs: use lists, names, erasing, moving, copying, inlining; the verifier.
#include <algorithm>
#include <ctime>
#include <limits>

#include "ir/graph.h"
#include "ir/model.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/ir_test_ops.h"

using namespace ttc::ir;
using ttc::DType;

namespace {

const Type f32x2 = Type::tensor(DType::f32, {2});

std::string joined(const Model& model) {
  std::string all;
  for (const std::string& message : verify(model)) all += message + "\n";
  return all;
}

Node* relu(Graph& graph, Value* x, std::string name = {}) {
  Node* node = graph.append("aten.relu.default", {x});
  node->add_result(f32x2, std::move(name));
  return node;
}

}  // namespace

TEST_CASE("use lists follow arguments, lists, regions and outputs", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  Value* x = g.add_input(f32x2, "x");
  Node* a = relu(g, x, "a");
  Node* cat = g.append("aten.cat.default", {Arg::List{a->result(), x, a->result()}});
  cat->add_result(Type::tensor(DType::f32, {6}), "c");
  Node* branch = g.append("prim.if", {});
  branch->add_result(f32x2, "r");
  Graph* region = branch->add_region();
  region->add_output(relu(*region, a->result(), "inner")->result());
  branch->add_region()->add_output(a->result());
  g.add_output(Arg::List{a->result(), cat->result()});

  CHECK(cat->args().size() == 2);  // dim=0 is filled in
  CHECK(a->result()->users() == std::vector<Node*>{cat, cat, region->nodes().front().get()});
  CHECK(a->result()->output_uses() == 2);
  CHECK(joined(model).empty());

  a->result()->replace_all_uses_with(x);
  CHECK_FALSE(a->result()->has_uses());
  CHECK(x->use_count() == 1 + 3 + 1 + 2);
  CHECK(branch->regions()[1]->outputs()[0].arg.value() == x);
  g.erase(a);
  CHECK(x->use_count() == 3 + 1 + 2);
  CHECK(joined(model).empty());
  branch->regions().clear();
  CHECK(x->use_count() == 3 + 1);
}

TEST_CASE("users stand in the order in which they began, whatever order they go in", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  Value *x = g.add_input(f32x2, "x"), *y = g.add_input(f32x2, "y");
  std::vector<Node*> left;
  for (int i = 0; i < 100; ++i) left.push_back(relu(g, x, "r" + std::to_string(i)));
  g.add_output(y);
  const auto drop = [&](std::size_t i) {
    g.erase(left[i]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  };
  while (left.size() > 3) {
    drop(left.size() * 2 / 3);
    CHECK(x->users() == left);
    CHECK(x->users().size() == left.size());
    drop(0);
    CHECK(x->users().front() == left.front());
    left.push_back(relu(g, x, "again"));
    drop(left.size() / 3);
    CHECK(x->users() == left);
  }
  CHECK(joined(model).empty());
  x->replace_all_uses_with(y);
  CHECK(x->users().empty());
  CHECK(x->users().begin() == x->users().end());
  CHECK(y->users() == left);
  CHECK(joined(model).empty());
  y->replace_all_uses_with(x);
  CHECK(x->users() == left);
  CHECK(y->users().empty());
}

TEST_CASE("a use is replaced where it stands, without a look at the node's other operands", "[ir][graph]") {
  test::register_ops();
  // Processor time of replacing each operand of one node, least of three.
  const auto time = [](int count, bool by_node) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int repeat = 0; repeat < 3; ++repeat) {
      Model model;
      Graph& g = *model.graph;
      Value* x = g.add_input(f32x2, "x");
      std::vector<Value*> parts, others;
      for (auto* list : {&parts, &others})
        for (int i = 0; i < count; ++i) list->push_back(relu(g, x)->result());
      Node* cat = g.append("aten.cat.default", {Arg::List(parts.begin(), parts.end())});
      const std::clock_t start = std::clock();
      for (std::size_t i = parts.size(); i-- > 0;)
        by_node ? cat->replace_uses_of(parts[i], others[i]) : parts[i]->replace_all_uses_with(others[i]);
      least = std::min(least, std::clock() - start);
      CHECK(cat->operands() == others);
      CHECK_FALSE(parts.front()->has_uses());
      CHECK(others.back()->users() == std::vector<Node*>{cat});
    }
    return static_cast<double>(least);
  };
  for (const bool by_node : {false, true}) CHECK(time(32'000, by_node) < 24 * (time(4'000, by_node) + 100));
}

TEST_CASE("uses in lists of lists and beside literals are replaced, all of them", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  Value *x = g.add_input(f32x2, "x"), *y = g.add_input(f32x2, "y"), *z = g.add_input(f32x2, "z");
  const std::vector<Arg> lists = {Arg::List{Arg(), x, Arg::List{x, y}},
                                  Arg::List{Arg::List{y, x}, x, Arg()},
                                  Arg::List{x, 1, y, x},
                                  Arg::List{Arg::List{}, x, Arg::List{y, y}, y},
                                  Arg::List{Arg::List{x, y, x}, y, 2, 3},
                                  Arg::List{y, Arg::List{x}, x}};
  for (const Arg& list : lists) {
    Node* node = g.append("higher_order.any", {y, list, x, Arg::List{y, x}});
    std::vector<Value*> expected = node->operands();
    std::ranges::replace(expected, x, z);
    node->replace_uses_of(x, z);
    CHECK(node->operands() == expected);
    CHECK_FALSE(x->has_uses());
    std::ranges::replace(expected, y, x);
    y->replace_all_uses_with(x);
    CHECK(node->operands() == expected);
    CHECK(static_cast<std::ptrdiff_t>(x->users().size()) == std::ranges::count(expected, x));
    CHECK(static_cast<std::ptrdiff_t>(z->users().size()) == std::ranges::count(expected, z));
    g.erase(node);
    CHECK_FALSE((x->has_uses() || y->has_uses() || z->has_uses()));
  }
}

TEST_CASE("a graph knows which of two nodes stands before the other", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  Value* x = g.add_input(f32x2, "x");
  std::vector<Node*> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(relu(g, x, "r" + std::to_string(i)));
  g.move_before(nodes[4], nodes[1]);
  const std::vector<Node*> order{nodes[0], nodes[4], nodes[1], nodes[2], nodes[3]};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < order.size(); ++j) CHECK(g.is_before(order[i], order[j]) == (i < j));
}

TEST_CASE("inputs go together and the others are counted anew", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  for (int i = 0; i < 6; ++i) g.add_input(f32x2, "x" + std::to_string(i));
  g.remove_inputs({0, 3, 5});
  REQUIRE(g.inputs().size() == 3);
  const std::vector<std::string> names{"x1", "x2", "x4"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(g.inputs()[i].value->name == names[i]);
    CHECK(g.inputs()[i].value->index() == static_cast<int>(i));
  }
}

TEST_CASE("a graph knows whether nodes of it or of its regions write", "[ir][graph]") {
  test::register_ops();
  Model model;
  Graph& g = *model.graph;
  Value* x = g.add_input(f32x2, "x");
  Node* outer = g.append("prim.if", {});
  Graph* region = outer->add_region();
  CHECK_FALSE(g.may_mutate());
  Node* writes = region->append("aten.copy_.default", {x, x});
  REQUIRE(writes->schema() != nullptr);
  CHECK((g.may_mutate() && region->may_mutate()));
  writes->set_op("aten.relu.default");
  CHECK_FALSE(g.may_mutate());
  writes->set_op("aten.copy_.default");
  CHECK(clone(g)->may_mutate());
  region->erase(writes);
  CHECK_FALSE(g.may_mutate());
  region->append("aten.copy_.default", {x, x});
  g.erase(outer);
  CHECK_FALSE(g.may_mutate());
}

TEST_CASE("names are unique in the outermost graph", "[ir][graph]") {
  Model model;
  Graph& g = *model.graph;
  Value* x = g.add_input(f32x2, "x");
  Node* branch = g.append("prim.if", {});
  Graph* region = branch->add_region();
  CHECK(relu(*region, x, "x")->result()->name == "x_1");
  CHECK(relu(g, x, "x")->result()->name == "x_2");
  CHECK(relu(g, x, "x_1")->result()->name == "x_3");
  CHECK(relu(g, x)->result()->name == "0");
  CHECK(relu(g, x)->result()->name == "1");
  CHECK(region->outermost() == &g);
}

TEST_CASE("for_each survives erasing and inserting", "[ir][graph]") {
  Model model;
  Graph& g = *model.graph;
  Value* x = g.add_input(f32x2, "x");
  std::vector<Node*> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(relu(g, x));
  int visited = 0;
  g.for_each([&](Node* node) {
    ++visited;
    if (node == nodes[1]) {
      g.erase(nodes[2]);  // the next one
      g.erase(nodes[4]);
      g.insert_after(node, "aten.relu.default", {x})->add_result(f32x2);
      g.erase(node);
    }
  });
  CHECK(visited == 4);
  CHECK(g.nodes().size() == 4);
  g.move_before(nodes[5], nodes[0]);
  CHECK(g.nodes().front().get() == nodes[5]);
  CHECK(joined(model).empty());
}

TEST_CASE("copies are deep and equal in text", "[ir][graph]") {
  test::register_ops();
  const auto model = parse(R"(graph main(%x: f32[2] user, $w: f32[2] parameter "w") {
    %a: f32[2] = aten.add.Tensor(%x, $w, alpha=2)  @m : C  at f.py:1
    %r: f32[2] = prim.if(%a) { %b: f32[2] = aten.relu.default(%a) return %b } { ^no(%i: int): return %x } origins=[1, 2]
    return %r, mutation parameter "w" = %a
  })");
  std::map<const Value*, Value*> map;
  const auto copy = clone(*model->graph, &map);
  CHECK(print(*copy) == print(*model->graph));
  const Value* a = model->graph->nodes().front()->result();
  REQUIRE(map.at(a)->def() == copy->nodes().front().get());
  CHECK(map.at(a)->use_count() == a->use_count());
  CHECK(map.at(a) != a);
}

TEST_CASE("a region is inlined with values and literals for its inputs", "[ir][graph]") {
  test::register_ops();
  const auto model = parse(R"(graph main(%x: f32[2] user) {
    %r: f32[2] = higher_order.wrap(false, region(0), %x) { ^body(%y: f32[2], %k: int):
      %s: f32[2] = aten.add.Tensor(%y, %x, alpha=%k)
      %t: f32[2] = prim.if(%y) { %u: f32[2] = aten.add.Tensor(%s, %y) return %u } { return %y }
      return %t, %k }
    return %r
  })");
  Graph& g = *model->graph;
  Node* wrap = g.nodes().front().get();
  const auto outputs = inline_region(*wrap->regions()[0], {g.inputs()[0].value.get(), 3}, wrap);
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[1] == Arg(3));
  wrap->result()->replace_all_uses_with(outputs[0].value());
  g.erase(wrap);
  CHECK(joined(*model).empty());
  CHECK(print(g) == R"(graph main(%x: f32[2] user) {
  %s_1: f32[2] = aten.add.Tensor(%x, %x, alpha=3)
  %t_1: f32[2] = prim.if(%x) {
    %u_1: f32[2] = aten.add.Tensor(%s_1, %x)
    return %u_1
  } {
    return %x
  }
  return %t_1
}
)");
}

TEST_CASE("constants get unique names; unused weights go", "[ir][graph]") {
  Model model;
  Value* a = model.add_constant("c", make_weight(DType::f32, {1}, std::vector<std::byte>(4)));
  Value* b = model.add_constant("c", make_weight(DType::f32, {1}, std::vector<std::byte>(4)));
  CHECK(b->name != a->name);
  // PyTorch sets it as an attribute of a torch.nn.Module, which has one of this name.
  CHECK(model.add_constant("to", make_weight(DType::f32, {1}, std::vector<std::byte>(4)))->name == "to_1");
  CHECK(model.weight_of(b) != nullptr);
  CHECK(model.weight_of(b) != model.weight_of(a));
  model.graph->add_output(b);
  model.drop_unused_weights();
  CHECK(model.weights.size() == 1);
  CHECK(model.graph->inputs().size() == 1);
  CHECK(joined(model).empty());

  // c_1 stays: what was made of it is no attribute of it.
  model.graph->add_output(
      model.add_constant(b->name + ".packed", make_weight(DType::f32, {1}, std::vector<std::byte>(4))));
  model.drop_unused_weights();
  CHECK(model.graph->inputs()[1].target == b->name + "_packed");
  CHECK(model.weights.contains(b->name + "_packed"));
  CHECK(model.weights.size() == 2);
}

TEST_CASE("the verifier names the node and where it comes from", "[ir][verifier]") {
  test::register_ops();
  const char* text = R"(graph main(%x: f32[2] user, $w: f32[2] buffer "w") {
    %a: f32[2] = aten.add.Tensor(%x, $w)  @enc.fc : Linear  at f.py:7
    %b: f32[2] = aten.relu.default(%a)
    return %b })";
  const auto model = parse(text);
  Graph& g = *model->graph;
  Node *add = g.nodes().front().get(), *last = g.nodes().back().get();
  REQUIRE(joined(*model).empty());
  SECTION("use before definition") {
    g.move_before(last, add);
    CHECK(joined(*model) == "%b = aten.relu.default: uses %a before it is defined\n");
  }
  SECTION("argument kinds") {
    add->set_arg(2, Arg("two"));
    CHECK(joined(*model) == "%a = aten.add.Tensor: argument 'alpha' is no Scalar (enc.fc, f.py:7)\n");
  }
  SECTION("argument count") {
    add->set_args({g.inputs()[0].value.get()});
    CHECK(joined(*model).find("has 1 arguments, its schema 3") != std::string::npos);
  }
  SECTION("result count and type") {
    last->result()->type = Type::integer();
    add->add_result(f32x2);
    CHECK(joined(*model).find("has 2 results, its schema 1") != std::string::npos);
    CHECK(joined(*model).find("result %b is int, its schema says Tensor") != std::string::npos);
  }
  SECTION("types") {
    add->result()->type = Type();
    CHECK(joined(*model).find("result %a is used but has no type (enc.fc, f.py:7)") != std::string::npos);
  }
  SECTION("names") {
    add->result()->name = "x";
    CHECK(joined(*model) == "two values are named %x\n");
  }
  SECTION("weights") {
    model->weights.at("w").sizes = {3};
    CHECK(joined(*model).find("has another type than its input") != std::string::npos);
    model->weights.clear();
    CHECK(joined(*model) == "weight $w ('w') is missing in the model\n");
  }
  SECTION("storage") {
    model->weights.at("w").strides = {100};
    CHECK(joined(*model).find("lies outside of its storage") != std::string::npos);
  }
  SECTION("mutation targets") {
    g.add_output(last->result(), OutputKind::buffer_mutation, "w");
    CHECK(joined(*model).empty());
    g.add_output(last->result(), OutputKind::buffer_mutation, "v");
    g.add_output(last->result(), OutputKind::user_input_mutation, "w");
    CHECK(joined(*model) == "an output mutates 'v', which is no weight\nan output mutates 'w', which is no input\n");
  }
  SECTION("region numbers") {
    g.append("higher_order.cond", {RegionArg{1}});
    CHECK(joined(*model) == "higher_order.cond: names region 1 of 0\n");
  }
  SECTION("values of regions stay inside") {
    Node* branch = g.append("prim.if", {});
    Node* inner = relu(*branch->add_region(), last->result(), "inner");
    g.add_output(inner->result());
    CHECK(joined(*model) == "graph 'main' returns %inner, which is not defined there\n");
    g.remove_output(1);
  }
}

TEST_CASE("a dim is counted from either end, and is none where it is no number or no dim", "[ir][graph]") {
  const Type type = Type::tensor(DType::f32, {2, SymExpr::symbol("s0"), 4});
  CHECK(type.dim(0) == 2);
  CHECK(type.dim(2) == 4);
  CHECK(type.dim(-1) == 4);
  CHECK(type.dim(-3) == 2);
  CHECK_FALSE(type.dim(1));
  CHECK_FALSE(type.dim(-2));
  for (const int none : {3, 4, -4, -5}) CHECK_FALSE(type.dim(none));
  CHECK_FALSE(Type::tensor(DType::f32, {}).dim(-1));
  CHECK_FALSE(Type::of(TypeKind::tensor).dim(0));
  CHECK_FALSE(Type::of(TypeKind::integer).dim(0));
}

TEST_CASE("strides of dense tensors: empty dims count as one, products stay in range", "[ir][graph]") {
  using Sizes = std::vector<std::int64_t>;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(contiguous_strides({2, 3, 4}) == Sizes{12, 4, 1});
  CHECK(contiguous_strides({2, 0, 4}) == Sizes{4, 4, 1});
  CHECK(contiguous_strides({}).empty());
  CHECK(contiguous_strides({2, most, most}) == Sizes{most, most, 1});

  const auto with = [](Sizes sizes, std::vector<SymExpr> strides) {
    Type type = Type::tensor(DType::f32, std::vector<SymExpr>(sizes.begin(), sizes.end()));
    type.strides = std::move(strides);
    return type.has_contiguous_strides();
  };
  CHECK(with({2, 3}, {}));
  CHECK(with({2, 3}, {3, 1}));
  CHECK(with({1, 3}, {7, 1}));
  CHECK(with({0, 3}, {9, 1}));
  CHECK(with({2, 0}, {1, 9}));
  CHECK_FALSE(with({2, 3}, {1, 2}));
  CHECK_FALSE(with({2, 3}, {3}));
  CHECK_FALSE(with({2, 3, 4}, {12, 1, 3}));
}

TEST_CASE("a weight is contiguous, and fits its storage, or not", "[ir][graph]") {
  using Sizes = std::vector<std::int64_t>;
  const auto weight = [](Sizes sizes, Sizes strides, std::int64_t offset = 0) {
    Weight w;
    w.dtype = DType::f32;
    w.sizes = std::move(sizes);
    w.strides = std::move(strides);
    w.storage_offset = offset;
    auto storage = std::make_shared<Storage>();
    storage->bytes = 6 * 4;
    w.storage = std::move(storage);
    return w;
  };
  CHECK(weight({2, 3}, {3, 1}).is_contiguous());
  CHECK(weight({2, 1, 3}, {3, 9, 1}).is_contiguous());
  CHECK(weight({0, 3}, {1, 1}).is_contiguous());
  CHECK_FALSE(weight({3, 2}, {1, 3}).is_contiguous());
  CHECK_FALSE(weight({2, 3}, {1}).is_contiguous());

  CHECK(weight({2, 3}, {3, 1}).fits_storage());
  CHECK(weight({5}, {1}, 1).fits_storage());
  CHECK(weight({1000, 1}, {0, 1}, 5).fits_storage());
  CHECK(weight({0}, {1}, 6).fits_storage());
  CHECK_FALSE(weight({0}, {1}, 7).fits_storage());
  CHECK_FALSE(weight({6}, {1}, 1).fits_storage());
  CHECK_FALSE(weight({7}, {1}).fits_storage());
  CHECK_FALSE(weight({3}, {3}).fits_storage());
  CHECK_FALSE(weight({2}, {-1}, 5).fits_storage());
  CHECK_FALSE(weight({-1}, {1}).fits_storage());
  CHECK_FALSE(weight({1}, {1}, -1).fits_storage());
  CHECK_FALSE(weight({2}, {}).fits_storage());
  CHECK_FALSE(weight({4, 2}, {std::numeric_limits<std::int64_t>::max(), 1}).fits_storage());
}

TEST_CASE("an argument reads as the literals that it can be taken for", "[ir][graph]") {
  CHECK(Arg(true).boolean() == true);
  CHECK(Arg(false).boolean() == false);
  CHECK(Arg(1).boolean() == true);
  CHECK(Arg(0).boolean() == false);
  CHECK_FALSE(Arg(2).boolean());
  CHECK_FALSE(Arg(1.0).boolean());
  CHECK_FALSE(Arg(std::string("true")).boolean());
  CHECK(Arg(7).integer() == 7);
  CHECK_FALSE(Arg(7.5).integer());
  CHECK(Arg(7).number() == 7.0);
  CHECK(Arg(7.5).number() == 7.5);
  CHECK_FALSE(Arg(std::string("7")).number());
  CHECK(Arg().is_none());
  CHECK_FALSE(Arg(0).is_none());
  CHECK(Arg::ints({1, 2}).integers() == std::vector<std::int64_t>{1, 2});
  CHECK_FALSE(Arg(Arg::List{1, 2.5}).integers());
  CHECK_FALSE(Arg(1).integers());
}
