// See scalar_ops.h. Integer arithmetic wraps like LibTorch's; division, modulo and power follow Python.
#include "torch/scalar_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "support/error.h"
#include "support/integers.h"

namespace ttrt {
namespace {

using Args = std::span<const RtValue>;
using Results = std::vector<RtValue>;

ttc::Error failure(const std::string& what) { return {ttc::Exit::check_failed, "", what}; }

const HostTensor* single_element(const RtValue& value) {
  const auto* tensor = value.get_if<HostTensor>();
  return tensor != nullptr && tensor->numel() == 1 ? tensor : nullptr;
}

bool is_float(const RtValue& value) {
  if (const auto* tensor = single_element(value)) return ttc::is_floating(tensor->dtype);
  return value.get_if<double>() != nullptr;
}

const RtValue& at(Args args, std::size_t i) {
  if (i >= args.size()) throw failure("an argument is missing");
  return args[i];
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) throw failure("integer division by zero");
  return ttc::floor_div(a, b);
}

std::int64_t py_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) throw failure("integer modulo by zero");
  return ttc::floor_mod(a, b);
}

double py_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

std::int64_t py_pow(std::int64_t base, std::int64_t exponent) {
  std::uint64_t result = 1, b = static_cast<std::uint64_t>(base);
  for (std::int64_t e = exponent; e > 0; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return static_cast<std::int64_t>(result);
}

// Both operands as int64 or both as double.
template <typename I, typename F>
void arithmetic(Args args, Results& out, I&& on_integers, F&& on_floats) {
  const RtValue &a = at(args, 0), &b = at(args, 1);
  if (is_float(a) || is_float(b))
    out.emplace_back(on_floats(to_number(a), to_number(b)));
  else
    out.emplace_back(on_integers(to_integer(a), to_integer(b)));
}

std::int64_t wrap(std::uint64_t v) { return static_cast<std::int64_t>(v); }

void add(Args a, Results& o) {
  const auto *x = at(a, 0).get_if<RtValue::List>(), *y = at(a, 1).get_if<RtValue::List>();
  if (x != nullptr && y != nullptr) {
    RtValue::List joined = *x;
    joined.insert(joined.end(), y->begin(), y->end());
    o.emplace_back(std::move(joined));
    return;
  }
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return wrap(std::uint64_t(p) + std::uint64_t(q)); },
      [](double p, double q) { return p + q; });
}
void sub(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return wrap(std::uint64_t(p) - std::uint64_t(q)); },
      [](double p, double q) { return p - q; });
}
void mul(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return wrap(std::uint64_t(p) * std::uint64_t(q)); },
      [](double p, double q) { return p * q; });
}
void floordiv(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return floor_div(p, q); },
      [](double p, double q) { return std::floor(p / q); });
}
void truediv(Args a, Results& o) {
  const double divisor = to_number(at(a, 1));
  if (divisor == 0) throw failure("division by zero");
  o.emplace_back(to_number(at(a, 0)) / divisor);
}
void mod(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return py_mod(p, q); },
      [](double p, double q) { return py_mod(p, q); });
}
void power(Args a, Results& o) {
  if (!is_float(at(a, 0)) && !is_float(at(a, 1)) && to_integer(at(a, 1)) >= 0) {
    o.emplace_back(py_pow(to_integer(a[0]), to_integer(a[1])));
    return;
  }
  o.emplace_back(std::pow(to_number(at(a, 0)), to_number(at(a, 1))));
}
void bit_and(Args a, Results& o) {
  if (a.size() == 2 && a[0].get_if<bool>() && a[1].get_if<bool>())
    o.emplace_back(to_boolean(a[0]) && to_boolean(a[1]));
  else
    o.emplace_back(to_integer(at(a, 0)) & to_integer(at(a, 1)));
}
void bit_or(Args a, Results& o) {
  if (a.size() == 2 && a[0].get_if<bool>() && a[1].get_if<bool>())
    o.emplace_back(to_boolean(a[0]) || to_boolean(a[1]));
  else
    o.emplace_back(to_integer(at(a, 0)) | to_integer(at(a, 1)));
}
void shift_left(Args a, Results& o) {
  o.emplace_back(wrap(std::uint64_t(to_integer(at(a, 0))) << (to_integer(at(a, 1)) & 63)));
}
void shift_right(Args a, Results& o) { o.emplace_back(to_integer(at(a, 0)) >> (to_integer(at(a, 1)) & 63)); }

template <template <typename> typename Compare>
void compare(Args a, Results& o) {
  const RtValue &x = at(a, 0), &y = at(a, 1);
  if (const auto *s = x.get_if<std::string>(), *t = y.get_if<std::string>(); s != nullptr && t != nullptr)
    o.emplace_back(Compare<std::string>{}(*s, *t));
  else if (is_float(x) || is_float(y))
    o.emplace_back(Compare<double>{}(to_number(x), to_number(y)));
  else
    o.emplace_back(Compare<std::int64_t>{}(to_integer(x), to_integer(y)));
}

void negate(Args a, Results& o) {
  if (is_float(at(a, 0)))
    o.emplace_back(-to_number(a[0]));
  else
    o.emplace_back(wrap(0 - std::uint64_t(to_integer(a[0]))));
}
void identity(Args a, Results& o) { o.push_back(at(a, 0)); }
void logical_not(Args a, Results& o) { o.emplace_back(!to_boolean(at(a, 0))); }
void sym_int(Args a, Results& o) { o.emplace_back(static_cast<std::int64_t>(std::trunc(to_number(at(a, 0))))); }
void sym_float(Args a, Results& o) { o.emplace_back(to_number(at(a, 0))); }
void sym_ite(Args a, Results& o) { o.push_back(to_boolean(at(a, 0)) ? at(a, 1) : at(a, 2)); }
void sym_max(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return std::max(p, q); },
      [](double p, double q) { return std::max(p, q); });
}
void sym_min(Args a, Results& o) {
  arithmetic(
      a, o, [](std::int64_t p, std::int64_t q) { return std::min(p, q); },
      [](double p, double q) { return std::min(p, q); });
}
void square_root(Args a, Results& o) { o.emplace_back(std::sqrt(to_number(at(a, 0)))); }
void floor_int(Args a, Results& o) { o.emplace_back(static_cast<std::int64_t>(std::floor(to_number(at(a, 0))))); }
void ceil_int(Args a, Results& o) { o.emplace_back(static_cast<std::int64_t>(std::ceil(to_number(at(a, 0))))); }

const Shape& sizes_of(const RtValue& value) {
  if (const auto* host = value.get_if<HostTensor>()) return host->sizes;
  if (const auto* device = value.get_if<DeviceTensor>()) return device->spec.logical;
  throw failure("a tensor is expected");
}

std::size_t wrapped_index(std::int64_t i, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  if (i < -n || i >= n)
    throw failure("index " + std::to_string(i) + " is out of range of " + std::to_string(n) + " elements");
  return static_cast<std::size_t>(i < 0 ? i + n : i);
}

void size_int(Args a, Results& o) {
  const Shape& sizes = sizes_of(at(a, 0));
  o.emplace_back(sizes[wrapped_index(to_integer(at(a, 1)), sizes.size())]);
}
void size_all(Args a, Results& o) {
  RtValue::List list;
  for (const std::int64_t d : sizes_of(at(a, 0))) list.emplace_back(d);
  o.emplace_back(std::move(list));
}
void numel(Args a, Results& o) { o.emplace_back(volume(sizes_of(at(a, 0)))); }
void dim(Args a, Results& o) { o.emplace_back(static_cast<std::int64_t>(sizes_of(at(a, 0)).size())); }

const RtValue::List& list_of(const RtValue& value) {
  const auto* list = value.get_if<RtValue::List>();
  if (list == nullptr) throw failure("a list is expected");
  return *list;
}

void get_item(Args a, Results& o) {
  const RtValue::List& list = list_of(at(a, 0));
  o.push_back(list[wrapped_index(to_integer(at(a, 1)), list.size())]);
}
void construct(Args a, Results& o) { o.emplace_back(RtValue::List(a.begin(), a.end())); }
void unpack(Args a, Results& o) {
  for (const RtValue& item : list_of(at(a, 0))) o.push_back(item);
}
void none(Args, Results& o) { o.emplace_back(); }
void raise(Args a, Results&) {
  const auto* text = a.empty() ? nullptr : a[0].get_if<std::string>();
  throw failure("the model raised an exception: " + (text != nullptr ? *text : std::string("(no message)")));
}

// ---- dicts: their pairs in order ----

const RtValue::List& pair_of(const RtValue& value) {
  const RtValue::List& pair = list_of(value);
  if (pair.size() != 2) throw failure("a pair of key and item is expected");
  return pair;
}
bool same_key(const RtValue& a, const RtValue& b) {
  const auto *x = a.get_if<std::string>(), *y = b.get_if<std::string>();
  if (x != nullptr || y != nullptr) return x != nullptr && y != nullptr && *x == *y;
  return to_number(a) == to_number(b);
}
// Where the key is; the number of pairs where it is not.
std::size_t find_key(const RtValue::List& pairs, const RtValue& key) {
  std::size_t i = 0;
  while (i < pairs.size() && !same_key(pair_of(pairs[i])[0], key)) ++i;
  return i;
}
std::string key_text(const RtValue& key) {
  const auto* text = key.get_if<std::string>();
  return text != nullptr ? "'" + *text + "'" : std::to_string(to_integer(key));
}
void set_pair(RtValue::List& pairs, const RtValue& key, const RtValue& item) {
  const std::size_t i = find_key(pairs, key);
  if (i == pairs.size()) pairs.emplace_back();
  pairs[i] = RtValue::List{key, item};
}
void dict_construct(Args a, Results& o) {
  RtValue::List pairs;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) set_pair(pairs, a[i], a[i + 1]);
  o.emplace_back(std::move(pairs));
}
void dict_set(Args a, Results& o) {
  RtValue::List pairs = list_of(at(a, 0));
  set_pair(pairs, at(a, 1), at(a, 2));
  o.emplace_back(std::move(pairs));
}
void dict_remove(Args a, Results& o) {
  RtValue::List pairs = list_of(at(a, 0));
  const std::size_t i = find_key(pairs, at(a, 1));
  if (i == pairs.size()) throw failure("the dict has no key " + key_text(a[1]));
  pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
  o.emplace_back(std::move(pairs));
}
void dict_get(Args a, Results& o) {
  const RtValue::List& pairs = list_of(at(a, 0));
  const std::size_t i = find_key(pairs, at(a, 1));
  o.push_back(i < pairs.size() ? pair_of(pairs[i])[1] : a.size() > 2 ? a[2] : RtValue());
}
void dict_item(Args a, Results& o) {
  if (find_key(list_of(at(a, 0)), at(a, 1)) == list_of(a[0]).size())
    throw failure("the dict has no key " + key_text(a[1]));
  dict_get(a, o);
}
void dict_contains(Args a, Results& o) { o.emplace_back(find_key(list_of(at(a, 0)), at(a, 1)) < list_of(a[0]).size()); }
void dict_length(Args a, Results& o) { o.emplace_back(static_cast<std::int64_t>(list_of(at(a, 0)).size())); }
template <std::size_t Part>
void dict_parts(Args a, Results& o) {
  RtValue::List out;
  for (const RtValue& pair : list_of(at(a, 0))) out.push_back(pair_of(pair)[Part]);
  o.emplace_back(std::move(out));
}

// TorchScript's operators on dicts, by the name before the key's type: aten.get.default_str.
ScalarFunction find_dict_op(std::string_view op) {
  static const std::map<std::string_view, ScalarFunction> functions = {
      {"aten.__getitem__.Dict_", dict_item}, {"aten.get.", dict_get},         {"aten.get.default_", dict_get},
      {"aten.__contains__.", dict_contains}, {"aten.len.Dict_", dict_length}, {"aten.keys.", dict_parts<0>},
      {"aten.values.", dict_parts<1>},       {"aten.items.", identity}};
  for (const std::string_view key : {"str", "int", "bool", "float"})
    if (op.ends_with(key))
      if (const auto found = functions.find(op.substr(0, op.size() - key.size())); found != functions.end())
        return found->second;
  return nullptr;
}

const std::map<std::string_view, ScalarFunction>& table() {
  static const std::map<std::string_view, ScalarFunction> functions = {{"_operator.add", add},
                                                                       {"_operator.sub", sub},
                                                                       {"_operator.mul", mul},
                                                                       {"_operator.floordiv", floordiv},
                                                                       {"_operator.truediv", truediv},
                                                                       {"_operator.mod", mod},
                                                                       {"_operator.pow", power},
                                                                       {"_operator.neg", negate},
                                                                       {"_operator.pos", identity},
                                                                       {"_operator.and_", bit_and},
                                                                       {"_operator.or_", bit_or},
                                                                       {"_operator.lshift", shift_left},
                                                                       {"_operator.rshift", shift_right},
                                                                       {"_operator.not_", logical_not},
                                                                       {"_operator.eq", compare<std::equal_to>},
                                                                       {"_operator.ne", compare<std::not_equal_to>},
                                                                       {"_operator.lt", compare<std::less>},
                                                                       {"_operator.le", compare<std::less_equal>},
                                                                       {"_operator.gt", compare<std::greater>},
                                                                       {"_operator.ge", compare<std::greater_equal>},
                                                                       {"_operator.getitem", get_item},
                                                                       {"math.trunc", sym_int},
                                                                       {"math.floor", floor_int},
                                                                       {"math.ceil", ceil_int},
                                                                       {"math.sqrt", square_root},
                                                                       {"torch.sym_not", logical_not},
                                                                       {"torch.sym_int", sym_int},
                                                                       {"torch.sym_float", sym_float},
                                                                       {"torch.sym_ite", sym_ite},
                                                                       {"torch.sym_max", sym_max},
                                                                       {"torch.sym_min", sym_min},
                                                                       {"torch.sym_sqrt", square_root},
                                                                       {"torch._sym_sqrt", square_root},
                                                                       {"aten.sym_size.int", size_int},
                                                                       {"aten.sym_numel.default", numel},
                                                                       {"aten.size.int", size_int},
                                                                       {"aten.size.default", size_all},
                                                                       {"aten.numel.default", numel},
                                                                       {"aten.dim.default", dim},
                                                                       {"prim.dictconstruct", dict_construct},
                                                                       {"prim.dictset", dict_set},
                                                                       {"prim.dictremove", dict_remove},
                                                                       {"prim.listconstruct", construct},
                                                                       {"prim.tupleconstruct", construct},
                                                                       {"prim.listunpack", unpack},
                                                                       {"prim.tupleunpack", unpack},
                                                                       {"prim.tupleindex", get_item},
                                                                       {"prim.raiseexception", raise},
                                                                       {"prim.uninitialized", none},
                                                                       {"prim.uncheckedcast", identity},
                                                                       {"prim.none", none}};
  return functions;
}

double element(const HostTensor& tensor) {
  HostTensor wide = convert(tensor, ttc::DType::f64);
  return *wide.as<double>();
}

}  // namespace

std::int64_t to_integer(const RtValue& value) {
  if (const auto* i = value.get_if<std::int64_t>()) return *i;
  if (const auto* b = value.get_if<bool>()) return *b ? 1 : 0;
  if (const auto* d = value.get_if<double>()) return static_cast<std::int64_t>(*d);
  if (const auto* tensor = single_element(value)) return *convert(*tensor, ttc::DType::i64).as<std::int64_t>();
  throw failure("an integer is expected");
}

double to_number(const RtValue& value) {
  if (const auto* d = value.get_if<double>()) return *d;
  if (const auto* tensor = single_element(value)) return element(*tensor);
  return static_cast<double>(to_integer(value));
}

bool to_boolean(const RtValue& value) {
  if (const auto* b = value.get_if<bool>()) return *b;
  if (const auto* list = value.get_if<RtValue::List>()) return !list->empty();
  if (value.is_none()) return false;
  return to_number(value) != 0;
}

ScalarFunction find_scalar_op(std::string_view op) {
  std::string name(op);
  if (name.starts_with("prim.")) {  // "prim.ListConstruct" and "prim.list_construct" are the same
    std::string plain = "prim.";
    for (const char c : name.substr(5))
      if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    name = plain;
  }
  const auto it = table().find(name);
  return it == table().end() ? find_dict_op(name) : it->second;
}

bool asks_for_sizes(std::string_view op) {
  const ScalarFunction function = find_scalar_op(op);
  return function == size_int || function == size_all || function == numel || function == dim;
}

}  // namespace ttrt
