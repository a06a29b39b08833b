// What LibTorch's reader of TorchScript takes on trust, checked before it sees it.
#pragma once

#include <string_view>

namespace ttc::ts {

// Whether a debug record (code/*.debug_pkl) names only texts and places that it has. LibTorch looks them up unchecked,
// when somebody asks where a node came from.
bool is_sound_debug_record(std::string_view pickle);
// Whether every text and number of a pickle ends within it, and its memo has no more entries than it has bytes. LibTorch
// makes room for the length that a text states and up to the index that an entry states before it looks further: 4 GiB
// of text, 64 GiB of memo.
bool sizes_fit(std::string_view pickle);
// Whether code is nested so deeply that LibTorch's parser, which calls itself for each level, might run out of stack.
bool is_too_deep(std::string_view code);

}  // namespace ttc::ts
