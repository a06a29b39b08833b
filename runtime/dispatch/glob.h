// Globs of names: '*' any text, '?' one character, everything else itself, anchored at both ends, case-sensitive.
#pragma once

#include <string_view>

namespace ttrt::dispatch {

// Linear in pattern x text at worst. With `classes`, [abc], [a-z] and [!abc] stand for one character, as in a shell.
bool glob_match(std::string_view pattern, std::string_view text, bool classes = false);
bool has_wildcard(std::string_view pattern);  // '*' or '?'

}  // namespace ttrt::dispatch
