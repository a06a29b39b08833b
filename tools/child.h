// A function in a process of its own: whatever it does to that process, this one goes on.
#pragma once

#include <functional>
#include <string>

namespace ttc {

struct ChildResult {
  std::string text;     // what the function returned
  std::string problem;  // what kept it from returning: an exception, a signal, the time; "" where it did
};

// Forks, so what this process has loaded is there. Call it before threads are started here: the child has none of
// them. `seconds`: how long the child may take; 0: as long as it likes.
ChildResult run_in_child(const std::function<std::string()>& function, double seconds);

}  // namespace ttc
