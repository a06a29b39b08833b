// Dicts. One whose keys are known while lowering vanishes; another (an input that the code iterates over, keys that
// depend on data) is a value at run time: its pairs in order, read by TorchScript's operators on dicts. What writes to
// it makes a new value, `prim.dict_set` or `prim.dict_remove`.
#include <algorithm>

#include "support/error.h"
#include "torchscript/lowering.h"

namespace ttc::ts {
namespace {

using ir::Arg;

using Entries = std::vector<std::pair<Arg, Abstract>>;

auto find_key(Entries& entries, const Arg& key) {
  return std::ranges::find_if(entries, [&](const auto& entry) { return entry.first == key; });
}

void set_entry(Entries& entries, const Arg& key, Abstract item) {
  const auto found = find_key(entries, key);
  if (found != entries.end())
    found->second = std::move(item);
  else
    entries.emplace_back(key, std::move(item));
}

void on_dict(LoweringState& s, const JitNode& node) {
  Content content;
  std::vector<Arg> args;
  bool known = true;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) known = known && (i % 2 == 1 || s.in(node, i).is_literal());
  for (std::size_t i = 0; i + 1 < node.inputs().size(); i += 2) {
    if (known)
      set_entry(content.entries, s.in(node, i).arg, s.in(node, i + 1));
    else
      args.insert(args.end(), {to_arg(s, s.in(node, i)), to_arg(s, s.in(node, i + 1))});
  }
  if (!known) content.value = s.emit1("prim.dict_construct", std::move(args), ir_type(node.output()->type()));
  s.out(node, s.make_dict(std::move(content), node.output()->type()));
}

// dict(d), dict([(k, v), ...]): a new one with the entries of what is given.
void on_dict_of(LoweringState& s, const JitNode& node) {
  Content content;
  const Abstract given = node.inputs().empty() ? Abstract{} : s.in(node, 0);
  if (given.kind == Abstract::Kind::dict) {
    content = given.cell->content;
  } else if (given.kind == Abstract::Kind::list && !given.cell->content.value) {
    for (const Abstract& pair : given.cell->content.items) {
      if (pair.kind != Abstract::Kind::tuple || pair.items.size() != 2 || !pair.items[0].is_literal())
        s.unsupported("a dict of pairs that are only known at run time");
      set_entry(content.entries, pair.items[0].arg, pair.items[1]);
    }
  } else if (!node.inputs().empty()) {
    s.unsupported("a dict of a list that only exists at run time");
  }
  s.out(node, s.make_dict(std::move(content), node.output()->type()));
}

// What the dict is after an entry is set, at run time.
Content with_entry(LoweringState& s, const Cell& cell, const Abstract& key, const Abstract& item) {
  return {.value =
              s.emit1("prim.dict_set", {dict_value(s, cell), to_arg(s, key), to_arg(s, item)}, ir_type(cell.type))};
}

void read_at_run_time(LoweringState& s, const JitNode& node) {
  lower_operator(s, node);
  mark_copied(s, node);
}

// The content after `node` has written what is not known while lowering.
Content written_at_run_time(LoweringState& s, const JitNode& node, const std::string& name) {
  const Cell& cell = *s.in(node, 0).cell;
  if (name == "_set_item") return with_entry(s, cell, s.in(node, 1), s.in(node, 2));
  if (name == "Delete")
    return {.value = s.emit1("prim.dict_remove", {dict_value(s, cell), to_arg(s, s.in(node, 1))}, ir_type(cell.type))};
  const Abstract more = node.inputs().size() == 2 ? s.in(node, 1) : Abstract{};
  if (name != "update" || more.kind != Abstract::Kind::dict || more.cell->content.value)
    s.unsupported("dict operation '" + name + "' on a dict whose keys are only known at run time");
  Cell merged{.content = cell.content, .type = cell.type};
  for (const auto& [key, item] : more.cell->content.entries)
    merged.content = with_entry(s, merged, Abstract{.arg = key}, item);
  return merged.content;
}

}  // namespace

ir::Value* dict_value(LoweringState& s, const Cell& cell) {
  if (cell.content.value) return cell.content.value;
  std::vector<Arg> args;
  for (const auto& [key, item] : cell.content.entries) {
    if (item.cell) item.cell->copied = true;
    args.insert(args.end(), {key, to_arg(s, item)});
  }
  return s.emit1("prim.dict_construct", std::move(args), ir_type(cell.type));
}

void on_dict_read(LoweringState& s, const JitNode& node) {
  const Abstract dict = s.in(node, 0);
  const std::string name = node.kind().toUnqualString();
  if (dict.kind != Abstract::Kind::dict) {
    if (!fold_literals(s, node)) lower_operator(s, node);
    return;
  }
  if (name == "copy") return s.out(node, s.make_dict(dict.cell->content, dict.cell->type));
  if (dict.cell->content.value) return read_at_run_time(s, node);
  Entries& entries = dict.cell->content.entries;
  if (name == "len") return s.out(node, Abstract{.arg = static_cast<std::int64_t>(entries.size())});
  if (name == "__getitem__" || name == "get" || name == "__contains__") {
    const Abstract key = s.in(node, 1);
    const auto found = key.is_literal() ? find_key(entries, key.arg) : entries.end();
    if (!key.is_literal() || (name == "__getitem__" && found == entries.end())) return read_at_run_time(s, node);
    if (name == "__contains__") return s.out(node, Abstract{.arg = found != entries.end()});
    return s.out(node, found != entries.end() ? found->second : node.inputs().size() > 2 ? s.in(node, 2) : Abstract{});
  }
  std::vector<Abstract> items;
  for (const auto& [key, item] : entries) {
    if (name == "keys")
      items.push_back(Abstract{.arg = key});
    else if (name == "values")
      items.push_back(item);
    else
      items.push_back(Abstract{.kind = Abstract::Kind::tuple, .items = {Abstract{.arg = key}, item}});
  }
  s.out(node, s.make_list(std::move(items), node.output()->type()));
}

void on_dict_write(LoweringState& s, const JitNode& node) {
  const Abstract dict = s.in(node, 0);
  const std::string name = node.kind().toUnqualString();
  const Abstract key = node.inputs().size() > 1 ? s.in(node, 1) : Abstract{};
  check_own(s, dict);
  Content content = dict.cell->content;
  Entries& entries = content.entries;
  const bool more = name == "update" && key.kind == Abstract::Kind::dict && !key.cell->content.value;
  const bool known = !content.value && (key.is_literal() || more);
  const auto found = known && !more ? find_key(entries, key.arg) : entries.end();
  Abstract result;
  if (name == "clear") {
    content = Content{};
  } else if (!known || (found == entries.end() && (name == "Delete" || (name == "pop" && node.inputs().size() == 2)))) {
    content = written_at_run_time(s, node, name);
  } else if (name == "_set_item") {
    set_entry(entries, key.arg, s.in(node, 2));
  } else if (name == "update") {
    for (const auto& [other, item] : key.cell->content.entries) set_entry(entries, other, item);
  } else if (name == "setdefault") {
    result = found != entries.end() ? found->second : s.in(node, 2);
    set_entry(entries, key.arg, result);
  } else if (name == "pop" || name == "Delete") {
    result = found != entries.end() ? found->second : name == "pop" ? s.in(node, 2) : Abstract{};
    if (found != entries.end()) entries.erase(found);
  } else {
    s.unsupported("dict operation '" + name + "'");
  }
  s.change(dict.cell, std::move(content));
  if (node.outputs().size() == 1) s.out(node, std::move(result));
}

void add_dict_handlers(Handlers& handlers) {
  handlers["prim::DictConstruct"] = on_dict;
  handlers["aten::dict"] = on_dict_of;
  for (const char* name : {"keys", "values", "items", "get", "__contains__", "copy"})
    handlers[std::string("aten::") + name] = on_dict_read;
  for (const char* name : {"setdefault", "update"}) handlers[std::string("aten::") + name] = on_dict_write;
}

}  // namespace ttc::ts
