// The numbers of a case's tensor. Copies share them until one is changed; whoever gives them may keep the memory, and
// may bring a tensor of a device along which calls pack them into, once.
#pragma once

#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/tensor.h"

namespace ttrt::replay {

struct Tensor;

// Memory of a device that holds a tensor's values from the first call that packs them until they are others. Tensors in
// rows have their tiles beside it, as operators compute on tiles.
class Resident {
 public:
  explicit Resident(DeviceTensor memory) : memory_(std::move(memory)) {}
  // The tiles of `value`, whose numbers these are, in its shape; nullopt where they are of another format or split
  // otherwise, or the memory is gone. Tiles of rows are allocated on `device`.
  std::optional<DeviceTensor> holding(const Tensor& value, DataType format, Device& device);
  void forget();  // the values are others from here on
  const DeviceTensor& memory() const { return memory_; }

 private:
  DeviceTensor memory_;
  std::optional<DeviceTensor> tiles_;  // with the values in them
  std::mutex mutex_;
};

class Values {
 public:
  Values() = default;
  Values(std::vector<float> values) : own_(std::make_shared<std::vector<float>>(std::move(values))) {}
  Values(std::initializer_list<float> values) : Values(std::vector<float>(values)) {}
  template <std::input_iterator I>
  Values(I begin, I end) : Values(std::vector<float>(begin, end)) {}
  // The caller's, which `owner` keeps and nobody changes meanwhile.
  Values(std::span<const float> values, std::shared_ptr<const void> owner, std::shared_ptr<Resident> resident = {})
      : theirs_(values), owner_(std::move(owner)), resident_(std::move(resident)) {}

  std::span<const float> all() const { return own_ ? std::span<const float>(*own_) : theirs_; }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const float* data() const { return all().data(); }
  const float* begin() const { return all().data(); }
  const float* end() const { return all().data() + size(); }
  float operator[](std::size_t i) const { return all()[i]; }
  float at(std::size_t i) const { return i < size() ? all()[i] : throw std::out_of_range("an element of a case"); }
  operator std::vector<float>() const& { return {begin(), end()}; }
  operator std::vector<float>() && { return std::move(changed()); }
  Resident* resident() const { return resident_.get(); }

  // For this copy alone, and no longer those that a device has.
  std::vector<float>& changed() {
    if (!own_ || own_.use_count() != 1) own_ = std::make_shared<std::vector<float>>(begin(), end());
    theirs_ = {}, owner_.reset(), resident_.reset();
    return *own_;
  }

 private:
  std::shared_ptr<std::vector<float>> own_;  // else theirs
  std::span<const float> theirs_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Resident> resident_;
};

}  // namespace ttrt::replay
