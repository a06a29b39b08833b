// What an argument is when it is asked for as a number, a boolean or a list of integers.
#include "ir/arg.h"

namespace ttc::ir {

Arg::Arg() = default;
Arg::Arg(const Arg& other) = default;
Arg::Arg(Arg&& other) noexcept = default;
Arg& Arg::operator=(const Arg& other) = default;
Arg& Arg::operator=(Arg&& other) noexcept = default;
Arg::~Arg() = default;
bool Arg::operator==(const Arg& other) const = default;

Arg Arg::ints(const std::vector<std::int64_t>& values) { return List(values.begin(), values.end()); }

std::optional<std::int64_t> Arg::integer() const {
  if (const auto* i = get_if<std::int64_t>()) return *i;
  if (const auto* b = get_if<bool>()) return *b ? 1 : 0;
  return {};
}

std::optional<double> Arg::number() const {
  if (const auto* d = get_if<double>()) return *d;
  if (const auto i = integer()) return static_cast<double>(*i);
  return {};
}

std::optional<bool> Arg::boolean() const {
  if (const auto* b = get_if<bool>()) return *b;
  if (const auto* i = get_if<std::int64_t>(); i && (*i == 0 || *i == 1)) return *i == 1;
  return {};
}

std::optional<std::vector<std::int64_t>> Arg::integers() const {
  const List* items = list();
  if (!items) return {};
  std::vector<std::int64_t> out;
  for (const Arg& item : *items) {
    const auto* i = item.get_if<std::int64_t>();
    if (!i) return {};
    out.push_back(*i);
  }
  return out;
}

bool Arg::has_values() const {
  bool found = false;
  for_each_value([&](Value*) { found = true; });
  return found;
}

}  // namespace ttc::ir
