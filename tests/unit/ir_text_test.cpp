// The text form: what it looks like, that it reads back exactly, and that no text breaks the parser.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ir/model.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/ir_test_ops.h"

using namespace ttc::ir;
using ttc::DType;

namespace {

// Printed by the printer: everything the text form has.
const char* sample = R"(model {
  torch "2.13.0"
  dialect "TRAINING"
  range s0 in [2, 1024]
  range u0 in [-inf, inf]
  hint s0 = 7
  guard "L['x'].size()[0] == \"a\""
  input_name "x"
}
graph main(
    %x: f32[s0, 4] user,
    %flag: bool user = true,
    $fc.weight: f32[4, 4] parameter "fc.weight" grad = [1.0, -0.5, inf, nan, 1e-45, 0.1, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0],
    $big: bf16[64, 64] constant "big",
    $mask: bool[2] buffer "mask" nonpersistent = [true, false],
    $a: f16[2, 2] parameter "a" storage(0, 8) strides(1, 2) = [1.0, 3.0, 2.0, -0.0],
    $b: f16[3] parameter "b" storage(0, 8) strides(1) offset(1) = [2.0, 3.0, -0.0],
    $c8: f8e4m3fn[2] constant "c8" = bytes("7f01")) {
  %4: f32[s0, 4] = aten.linear.default(%x, $fc.weight)  @encoder.fc : torch.nn.modules.linear.Linear  at bert.py:212
  %"odd name": f32[s0, 4] strides(1, s0) = aten.gelu.default(%4, approximate="tanh\n\"q\"") place="device" origins=[0, 3]
  %v: f32[s0], %i: i64[s0] = aten.max.dim(%4, dim=-1)
  %n: int(s0) = aten.sym_size.int(%x, dim=0)
  %full: bf16[s0*2 + 1, 4] = aten.full.default([%n, 4], fill_value=-inf, dtype=bf16, layout=strided, device=device("cuda", 0), pin_memory=false)
  aten._assert_async.msg(%v, assert_msg="no")  @"" : Root
  %t: tuple<tensor, list<int>, dict<str, float>, object<"__torch__.X">> = custom.thing.default(none, 1, -2.5, complex(1.0, -inf), [1, %n, none], channels_last, memory_format(9), layout(3), dim=i64)
  %r: f32[*], %s: ?[2] = prim.if(%flag) {
    %u: tensor = aten.relu.default(%4)
    return %u, %v
  } { ^else(%k: int, %"": none):
    prim.loop(region(0)) {
      return single %k
    }
    return %4, [%v, $mask]
  } place="cpu"  at "a file.py:3"
  return mutation buffer "mask" = $mask, mutation input "x" = %4, %r, none, 3, other "o" = %s, token %n
}
)";

std::string fixed_sample() {
  std::string text = sample;
  const auto at = text.find("%\"\": none");
  return text.replace(at, 9, "%e: none ");
}

}  // namespace

TEST_CASE("text that was printed reads back and prints the same", "[ir][text]") {
  test::register_ops();
  std::string text = fixed_sample();
  text.erase(text.find("none ):") + 4, 1);
  const auto model = parse(text);
  CHECK(print(*model) == text);
  CHECK(verify(*model).empty());
}

TEST_CASE("what text says is what the model holds", "[ir][text]") {
  test::register_ops();
  const auto model = parse(fixed_sample());
  const Graph& g = *model->graph;
  CHECK(model->ranges.at("s0") == SymRange{2, 1024});
  CHECK(model->ranges.at("u0") == SymRange{});
  CHECK(model->info.dialect == "TRAINING");
  CHECK(model->info.hints.at("s0") == 7);
  CHECK(g.inputs()[1].literal == Arg(true));
  const Weight& w = model->weights.at("fc.weight");
  CHECK(w.requires_grad);
  float values[5];
  std::memcpy(values, w.data(), sizeof values);
  CHECK(values[1] == -0.5F);
  CHECK(std::isinf(values[2]));
  CHECK(std::isnan(values[3]));
  CHECK(values[4] == std::numeric_limits<float>::denorm_min());
  CHECK(model->weights.at("big").data() == nullptr);
  CHECK(model->weights.at("big").storage->absent());
  CHECK(model->weights.at("a").storage == model->weights.at("b").storage);
  const Node& linear = *g.nodes().front();
  CHECK(linear.arg("bias")->is_none());
  CHECK(linear.provenance->module_path == "encoder.fc");
  CHECK(linear.provenance->source == "bert.py:212");
  CHECK(linear.provenance->stack ==
        std::vector<std::pair<std::string, std::string>>{{"encoder.fc", "torch.nn.modules.linear.Linear"}});
  const Node& gelu = **std::next(g.nodes().begin());
  CHECK(*gelu.arg("approximate") == Arg("tanh\n\"q\""));
  CHECK(gelu.origins == std::vector<int>{0, 3});
  CHECK(gelu.result()->name == "odd name");
  const Node& thing = **std::next(g.nodes().begin(), 6);
  CHECK(thing.arg_names.back() == "dim");
  CHECK(*thing.arg("dim") == Arg(DType::i64));
  const Node& branch = *g.nodes().back();
  REQUIRE(branch.regions().size() == 2);
  CHECK(branch.regions()[1]->name == "else");
  CHECK(branch.place == "cpu");
  CHECK(g.outputs()[0].kind == OutputKind::buffer_mutation);
  CHECK(g.outputs()[1].target == "x");
}

TEST_CASE("weights take seeded, equal and listed values", "[ir][text]") {
  const auto model = parse(R"(graph m($r: f32[100] parameter "r" = rand(7), $q: f32[100] parameter "q" = rand(7),
      $s: bf16[40] buffer "s" = splat(0.5), $i: i64[2] constant "i" = [-9223372036854775808, 3],
      $u: u64[] constant "u" = [18446744073709551615]) { return })");
  const auto floats = [&](const char* name) {
    std::vector<float> out(100);
    std::memcpy(out.data(), model->weights.at(name).data(), 400);
    return out;
  };
  CHECK(floats("r") == floats("q"));
  double sum = 0, squares = 0;
  for (const float f : floats("r")) sum += f, squares += f * f;
  CHECK(std::fabs(sum / 100) < 0.4);
  CHECK(squares / 100 == Approx(1).margin(0.4));
  std::uint16_t half[40];
  std::memcpy(half, model->weights.at("s").data(), sizeof half);
  CHECK(half[39] == 0x3f00);
  CHECK(print(*model).find("= [-9223372036854775808, 3]") != std::string::npos);
  CHECK(print(*model).find("= [18446744073709551615]") != std::string::npos);
}

TEST_CASE("errors name the file, the line and the column", "[ir][text]") {
  test::register_ops();
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse(text, "t.ir");
    } catch (const ttc::Error& error) {
      CHECK(error.file() == "t.ir");
      return error.what();
    }
    return "parsed";
  };
  const std::string head = "graph g(%x: f32[2] user) {\n";
  CHECK(message(head + "  %y: f32[2] = aten.relu.default(%z)\n return }") ==
        "line 2, column 34: %z is not defined here");
  CHECK(
      message(head + "  %x: f32[2] = aten.relu.default(%x)\n return }").find("line 2, column 3: %x is defined twice") ==
      0);
  // What a region defines is its own, and its name is taken all the same.
  const std::string branch = head + "%y: f32[2] = prim.if(%x) { %z: f32[2] = aten.relu.default(%x)\n return %z }\n";
  CHECK(message(branch + "return %y }") == "parsed");
  CHECK(message(branch + "return %z }") == "line 4, column 8: %z is not defined here");
  CHECK(message(branch + "%z: f32[2] = aten.relu.default(%y) return %z }") == "line 4, column 1: %z is defined twice");
  CHECK(message(head + "%y: f33[2] = aten.relu.default(%x) return }").find("unknown type 'f33'") != std::string::npos);
  CHECK(message(head + "%y: f32[2] = aten.gelu.default(%x, aproximate=\"no\") return }")
            .find("no argument 'aproximate'") != std::string::npos);
  CHECK(message(head + "%y: f32[2] = aten.linear.default(%x) return }")
            .find("argument 'weight' of aten.linear.default is missing") != std::string::npos);
  CHECK(message(head + "%y: f32[2] = aten.relu.default(%x, 1, 2) return }").find("takes 1 arguments") !=
        std::string::npos);
  CHECK(message(head + "%y: f32[2] = aten.relu.default($x) return }").find("$x is no weight") != std::string::npos);
  CHECK(message(head + "return } x").find("line 2, column 10: expected the end") == 0);
  CHECK(message("graph g($w: f32[2] parameter \"w\" = [1.0]) { return }").find("expected ','") != std::string::npos);
  CHECK(
      message("graph g($w: i8[1] parameter \"w\" = [300]) { return }").find("expected a value of the weight's dtype") !=
      std::string::npos);
  CHECK(message("graph g($w: f32[999999999999] parameter \"w\" = rand(1)) { return }").find("elements") !=
        std::string::npos);
  CHECK(message("graph g($w: f32[999999999] parameter \"w\" = splat(1.0)) { return }").find("1 GiB") !=
        std::string::npos);
  CHECK(message("graph g($w: f32[999999999, 999999999, 999999999] parameter \"w\") { return }") ==
        "line 1, column 63: the weight does not fit its storage");
  CHECK(message(head + "prim.x(99999999999999999999) return }").find("is no 64-bit integer") != std::string::npos);
  CHECK(message(head + "prim.x(1e999) return }").find("is no number") != std::string::npos);
}

TEST_CASE("deep nesting is an error, not a crash", "[ir][text]") {
  const auto throws = [](const std::string& text) { CHECK_THROWS_AS(parse(text), ttc::Error); };
  std::string lists = "graph g() { prim.x(" + std::string(200000, '['),
              types = "graph g(%x: ", regions = "graph g() { ";
  for (int i = 0; i < 50000; ++i) types += "list<";
  for (int i = 0; i < 50000; ++i) regions += "prim.x() { ";
  throws(lists);
  throws(types);
  throws(regions);
  throws("graph g(%x: f32[" + std::string(100000, '(') + "] user) { return }");
}

TEST_CASE("cut or mutated text gives a model or an error", "[ir][text]") {
  test::register_ops();
  const std::string text = fixed_sample();
  const auto end = text.find_last_of('}');
  for (std::size_t n = 0; n <= end; ++n) CHECK_THROWS_AS(parse(text.substr(0, n)), ttc::Error);
  std::mt19937 random(3);
  int parsed = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string broken = text;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % broken.size();
      const std::size_t other = random() % text.size();
      switch (random() % 4) {
        case 0:
          broken[at] = static_cast<char>(random());
          break;
        case 1:
          broken.erase(at, 1 + random() % 20);
          break;
        case 2:
          broken.insert(at, text.substr(other, random() % 30));
          break;
        default:
          broken[at] = text[other];
      }
    }
    try {
      const auto model = parse(broken);
      const std::string once = print(*model);
      REQUIRE(print(*parse(once)) == once);
      verify(*model);
      ++parsed;
    } catch (const ttc::Error&) {
    }
  }
  CHECK(parsed > 0);
}

namespace {

// Grows a random, well-formed model with every kind of argument, type, weight and output.
class RandomModel {
 public:
  explicit RandomModel(unsigned seed) : random_(seed) {}

  std::unique_ptr<Model> make() {
    auto model = std::make_unique<Model>();
    Graph& g = *model->graph;
    model->ranges["s0"] = {2, pick(2) ? std::optional<std::int64_t>(99) : std::nullopt};
    for (int i = 0; i < 3; ++i) values_.push_back(g.add_input(type(2), name()));
    for (int i = 0; i < 3; ++i) values_.push_back(weight(*model));
    nodes(g, 12, 2);
    outputs(g);
    if (pick(2)) g.add_output(values_.back(), OutputKind::user_input_mutation, g.inputs()[0].value->name);
    return model;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string name() {
    static const char* names[] = {"", "x", "a.b", "odd \"name\"", "\n", "9", "return"};
    return names[pick(7)];
  }
  double number() {
    switch (pick(6)) {
      case 0:
        return std::numeric_limits<double>::infinity();
      case 1:
        return -0.0;
      case 2:
        return 5e-324;
      case 3:
        return std::ldexp(static_cast<double>(random_()), pick(200) - 100);
      default:
        return pick(100) * 0.1;
    }
  }
  SymExpr dim() { return pick(3) ? SymExpr(pick(5)) : SymExpr::symbol("s0") * (1 + pick(3)) + pick(2); }
  DType dtype() { return static_cast<DType>(pick(ttc::dtype_count)); }

  Type type(int depth) {
    if (pick(3)) {
      Type t = Type::tensor(dtype(), {});
      for (int i = pick(4); i > 0; --i) t.sizes.push_back(dim());
      if (pick(4) == 0)
        for (std::size_t i = 0; i < t.sizes.size(); ++i) t.strides.push_back(dim());
      return t;
    }
    Type t = Type::of(static_cast<TypeKind>(pick(11)));
    if (t.kind == TypeKind::integer && pick(2)) t.sym = dim();
    if (t.kind == TypeKind::object) t.object_class = name();
    if (t.kind == TypeKind::tensor && pick(2)) t.has_dtype = true;
    if (t.kind == TypeKind::list || t.kind == TypeKind::dict || t.kind == TypeKind::tuple)
      for (int i = depth > 0 ? 1 + pick(3) : 0; i > 0; --i) t.elements.push_back(type(depth - 1));
    return t;
  }

  Value* weight(Model& model) {
    const DType d = dtype();
    std::vector<std::int64_t> sizes;
    for (int i = pick(3); i > 0; --i) sizes.push_back(pick(3) ? 1 + pick(4) : 9);
    std::int64_t numel = 1;
    for (const auto s : sizes) numel *= s;
    std::vector<std::byte> bytes(static_cast<std::size_t>(numel * size_of(d)));
    for (std::byte& b : bytes) b = static_cast<std::byte>(d == DType::boolean ? pick(2) : pick(120));
    return model.add_constant("w" + std::to_string(pick(3)), make_weight(d, sizes, std::move(bytes)));
  }

  Arg arg(int depth) {
    switch (pick(depth > 0 ? 14 : 12)) {
      case 0:
        return {};
      case 1:
        return pick(1000) - 500;
      case 2:
        return std::numeric_limits<std::int64_t>::min();
      case 3:
        return number();
      case 4:
        return pick(2) == 0;
      case 5:
        return name();
      case 6:
        return dtype();
      case 7:
        return MemoryFormatArg{pick(6)};
      case 8:
        return pick(2) ? Arg(LayoutArg{pick(8)})
                       : Arg(DeviceArg{"cuda", pick(2) ? std::optional<int>(1) : std::nullopt});
      case 9:
        return std::complex<double>(number(), number());
      case 12:
      case 13: {
        Arg::List items;
        for (int i = pick(4); i > 0; --i) items.push_back(arg(depth - 1));
        return items;
      }
      default:
        return values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
    }
  }

  void outputs(Graph& g) {
    for (int i = pick(3); i > 0; --i) g.add_output(arg(1));
  }

  void nodes(Graph& g, int count, int depth) {
    static const char* ops[] = {"custom.op.default", "prim.if", "#ext:odd", "plain", "higher_order.cond", "return"};
    for (int i = 0; i < count; ++i) {
      std::vector<Arg> args;
      for (int a = pick(4); a > 0; --a) args.push_back(arg(2));
      Node* node = pick(4) == 0 ? g.append("aten.add.Tensor", {arg(0), arg(0), arg(0)}) : g.append(ops[pick(6)], args);
      if (node->schema() == nullptr || node->schema()->varargs) names_for(*node);
      for (int r = depth > 0 && pick(4) == 0 ? 1 + pick(2) : 0; r > 0; --r) region(*node, depth);
      if (pick(3) == 0) provenance(*node);
      if (pick(4) == 0) node->origins = {pick(9), pick(9)};
      if (pick(4) == 0) node->place = "device";
      for (int r = pick(3); r > 0; --r) values_.push_back(node->add_result(type(2), name()));
    }
  }

  void names_for(Node& node) {
    if (node.args().empty() || pick(3)) return;
    for (std::size_t i = 0; i < node.args().size(); ++i) node.arg_names.push_back(pick(2) ? "k e" : "dim");
  }

  void region(Node& node, int depth) {
    const std::size_t visible = values_.size();
    Graph* r = node.add_region();
    if (pick(2)) r->name = "body";
    for (int i = pick(3); i > 0; --i) values_.push_back(r->add_input(type(1), name()));
    nodes(*r, pick(4), depth - 1);
    outputs(*r);
    values_.resize(visible);
  }

  void provenance(Node& node) {
    Provenance p;
    p.module_path = name();
    p.module_class = pick(2) ? "torch.nn.Linear" : "";
    p.source = pick(2) ? "a/b.py:3" : name();
    if (!p.module_path.empty() || !p.module_class.empty()) p.stack.emplace_back(p.module_path, p.module_class);
    node.provenance = std::make_shared<const Provenance>(p);
  }

  std::mt19937 random_;
  std::vector<Value*> values_;
};

void check_equal(const Graph& a, const Graph& b) {
  REQUIRE(a.name == b.name);
  REQUIRE(a.inputs().size() == b.inputs().size());
  REQUIRE(a.outputs().size() == b.outputs().size());
  REQUIRE(a.nodes().size() == b.nodes().size());
  for (std::size_t i = 0; i < a.inputs().size(); ++i) {
    REQUIRE(a.inputs()[i].value->type == b.inputs()[i].value->type);
    REQUIRE(a.inputs()[i].value->name == b.inputs()[i].value->name);
    REQUIRE(a.inputs()[i].target == b.inputs()[i].target);
  }
  for (auto x = a.nodes().begin(), y = b.nodes().begin(); x != a.nodes().end(); ++x, ++y) {
    REQUIRE((*x)->op() == (*y)->op());
    REQUIRE((*x)->arg_names == (*y)->arg_names);
    REQUIRE(*(*x)->provenance == *(*y)->provenance);
    REQUIRE((*x)->origins == (*y)->origins);
    REQUIRE((*x)->place == (*y)->place);
    REQUIRE((*x)->args().size() == (*y)->args().size());
    REQUIRE((*x)->results().size() == (*y)->results().size());
    for (std::size_t i = 0; i < (*x)->args().size(); ++i) {
      const Arg &p = (*x)->arg(i), &q = (*y)->arg(i);
      REQUIRE(p.v.index() == q.v.index());
      if (!p.has_values()) REQUIRE(p == q);
      if (p.value() != nullptr) REQUIRE(p.value()->name == q.value()->name);
    }
    for (std::size_t i = 0; i < (*x)->results().size(); ++i) {
      REQUIRE((*x)->result(i)->type == (*y)->result(i)->type);
      REQUIRE((*x)->result(i)->name == (*y)->result(i)->name);
      REQUIRE((*x)->result(i)->use_count() == (*y)->result(i)->use_count());
    }
    REQUIRE((*x)->regions().size() == (*y)->regions().size());
    for (std::size_t i = 0; i < (*x)->regions().size(); ++i) check_equal(*(*x)->regions()[i], *(*y)->regions()[i]);
  }
}

}  // namespace

TEST_CASE("random models survive printing and parsing", "[ir][text]") {
  test::register_ops();
  for (unsigned seed = 0; seed < 300; ++seed) {
    const auto model = RandomModel(seed).make();
    const std::string text = print(*model);
    INFO("seed " << seed << "\n" << text);
    const auto back = parse(text);
    REQUIRE(print(*back) == text);
    check_equal(*model->graph, *back->graph);
    for (const auto& [name, weight] : model->weights)
      if (weight.numel() <= 16 && !is_complex(weight.dtype))
        REQUIRE(std::memcmp(weight.data(), back->weights.at(name).data(), weight.nbytes()) == 0);
    const auto copy = clone(*model->graph);
    REQUIRE(print(*copy) == print(*model->graph));
  }
}
