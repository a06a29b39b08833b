// A model that makes one token a call out of a cache: what a call takes within a loop, where the cache stays on the
// device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

struct DeviceProfile;

// What takes the prompt at once, before the loop.
struct FirstToken {
  std::string model;
  double us = 0;
  std::int64_t tokens = 0, users = 0;  // of each prompt; prompts of a call
};

struct DecodeLoop {
  std::int64_t users = 0;   // sequences of a call
  std::int64_t caches = 0;  // tensors that a call hands to the next
  double token_us = 0;      // a call without the caches' way to the host and back
  std::optional<FirstToken> first;

  double tokens_per_s() const { return token_us > 0 ? static_cast<double>(users) / token_us * 1e6 : 0; }
};

// Caches are buffers or inputs that the model writes, or inputs with an output of the same sizes but for one that may
// have grown, all of three dims or more. nullopt where there is none, or a call takes more than one token a sequence.
// `sizes` has a value for every symbol.
std::optional<DecodeLoop> decode_loop(const ir::Model& model, const DeviceProfile& profile,
                                      const ir::SymBinding& sizes);

OrderedJson to_json(const DecodeLoop& loop);

}  // namespace ttc
