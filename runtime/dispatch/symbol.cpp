// The pool behind Symbol.
#include "dispatch/symbol.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace ttrt::dispatch {

// Never destroyed: symbols are read by destructors of static objects.
struct SymbolPool {
  static Symbol look_up(std::string_view text, bool add) {
    Symbol out;
    if (text.empty()) return out;
    static auto* const pool = new SymbolPool;
    const std::lock_guard lock(pool->mutex);
    const auto found = pool->by_text.find(text);
    if (found != pool->by_text.end()) {
      out.entry_ = found->second;
    } else if (add) {
      out.entry_ = &pool->entries.emplace_back(
          Symbol::Entry{std::string(text), static_cast<std::uint32_t>(pool->entries.size()) + 1});
      pool->by_text.emplace(out.text(), out.entry_);
    }
    return out;
  }

  std::mutex mutex;
  std::deque<Symbol::Entry> entries;
  std::unordered_map<std::string_view, const Symbol::Entry*> by_text;  // views into the entries
};

Symbol::Symbol(std::string_view text) : Symbol(SymbolPool::look_up(text, true)) {}
Symbol Symbol::find(std::string_view text) { return SymbolPool::look_up(text, false); }

}  // namespace ttrt::dispatch
