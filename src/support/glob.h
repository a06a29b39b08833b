// Patterns of names, the same wherever a user gives one: modules, operators, nodes, kernels.
#pragma once

#include <string_view>

namespace ttc {

// By fnmatch(3), anchored at both ends: '*' is any text, '?' one character, [abc], [a-z] and [!abc] one of a class; a
// bracket that nothing closes is itself. Names are no paths: '*' and '?' also stand for dots and slashes. Case counts,
// a backslash is an ordinary character. A name matches itself, whatever is in it.
// "re:EXPRESSION" is a regular expression (ECMAScript: \d, \w, (a|b), {2}), which has to match the whole name. Throws
// ttc::Error (usage) where it is none.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace ttc
