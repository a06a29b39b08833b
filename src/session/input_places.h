// Where the tensors of an --io file go: which input, which item of a list, which key of a dict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"
#include "executor/signature.h"
#include "ops/value.h"

namespace ttc {

// Input `index`, or what `path` leads to in it where it is a list or a dict. The items of list x are x.0, x.1, ... (or
// x_0, ...), those of a list of tuples x.0.0, x.0.1, x.1.0, ...; by position, a list takes as many of in0, in1, ... as
// the others leave. Parts of a tuple x are inputs x.0, x.1, ..., items of a dict x.KEY.
class InputPlaces {
 public:
  // An item of a list or tuple by its number, of a dict by its key.
  struct Step {
    Step(std::size_t index) : number(index) {}  // NOLINT
    explicit Step(std::string text) : key(std::move(text)) {}
    std::size_t number = 0;
    std::string key = {};
    bool operator==(const Step&) const = default;
  };
  struct Place {
    std::size_t index = 0;
    std::vector<Step> path = {};
  };

  // `names`: those of the file, without their prefix.
  InputPlaces(const ir::Model& model, const std::vector<std::string>& names);

  std::optional<Place> find(const std::string& name) const;
  // Writes the tensor, or the number or list of numbers that it is, where `place` says. Throws ttc::Error (usage) for a
  // tensor where the model takes a text.
  void put(std::vector<ttrt::RtValue>& inputs, const Place& place, const ttrt::HostTensor& tensor) const;
  // The same of a value that is of the type already.
  void put_value(std::vector<ttrt::RtValue>& inputs, const Place& place, ttrt::RtValue value) const;
  const ir::Type& type_at(const Place& place) const;
  // Throws ttc::Error (usage) where `name` is an input of TorchScript that has taken its default and is none any more.
  void check_fixed(const std::string& name) const;

 private:
  const ir::Model& model_;
  std::vector<ttrt::UserInput> formal_;
  std::size_t positional_ = 0;
};

}  // namespace ttc
