// Reads what the text form says about a weight after its type and name: storage, strides, values.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ir/model.h"
#include "ir/scanner.h"

namespace ttc::ir {

class WeightParser {
 public:
  explicit WeightParser(Scanner& in) : in_(in) {}
  // [grad] [storage(ID|new, BYTES) strides(..) [offset(N)]] [= [..] | rand(SEED) | splat(X) | bytes("hex")]
  Weight parse(const Type& type);

 private:
  struct Pending {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<std::vector<std::byte>> bytes;  // null until a weight gives values
  };
  Pending& storage_of(Weight& weight);
  void allocate(Pending& pending);
  void values(const Weight& weight, Pending& pending);
  void listed(const Weight& weight, std::byte* base);
  void hexadecimal(const Weight& weight, std::byte* base);
  template <typename F>
  void for_each_element(const Weight& weight, std::byte* base, F&& f);
  std::vector<std::int64_t> integers();

  Scanner& in_;
  std::map<std::int64_t, Pending> storages_;
  Pending own_;
  std::size_t allocated_ = 0;
};

}  // namespace ttc::ir
