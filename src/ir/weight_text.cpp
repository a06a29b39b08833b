// See weight_text.h. Memory is only taken for weights with values, and bounded for the whole text.
#include "ir/weight_text.h"

#include <algorithm>
#include <span>

#include "ir/text.h"

namespace ttc::ir {
namespace {

constexpr std::size_t max_allocation = std::size_t{1} << 30;

// SplitMix64 (Steele, Lea, Flood 2014), the same on every machine.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// The sum of twelve uniform values less six: mean 0, variance 1, exactly reproducible.
double next_normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(next_random(state) >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

std::vector<std::int64_t> WeightParser::integers() {
  std::vector<std::int64_t> out;
  in_.expect('(');
  while (in_.peek() != ')') {
    out.push_back(in_.integer());
    if (!in_.accept(',')) break;
  }
  in_.expect(')');
  return out;
}

WeightParser::Pending& WeightParser::storage_of(Weight& weight) {
  own_ = {};
  if (!in_.accept_word("storage")) {
    own_.storage = std::make_shared<Storage>();
    own_.storage->bytes = weight.nbytes();
    return own_;
  }
  in_.expect('(');
  const bool own = in_.accept_word("new");
  Pending& pending = own ? own_ : storages_[in_.integer()];
  in_.expect(',');
  const std::int64_t bytes = in_.integer();
  in_.expect(')');
  if (bytes < 0) in_.fail("a storage has less than 0 bytes");
  if (!pending.storage) {
    pending.storage = std::make_shared<Storage>();
    pending.storage->bytes = static_cast<std::size_t>(bytes);
  }
  if (pending.storage->bytes != static_cast<std::size_t>(bytes))
    in_.fail("the storage has another size where it is first named");
  in_.expect_word("strides");
  weight.strides = integers();
  if (in_.accept_word("offset")) {
    in_.expect('(');
    weight.storage_offset = in_.integer();
    in_.expect(')');
  }
  return pending;
}

Weight WeightParser::parse(const Type& type) {
  Weight weight;
  weight.dtype = type.dtype;
  weight.sizes = type.static_sizes();
  weight.strides = contiguous_strides(weight.sizes);
  weight.requires_grad = in_.accept_word("grad");
  Pending& pending = storage_of(weight);
  weight.storage = pending.storage;
  if (!weight.fits_storage()) in_.fail("the weight does not fit its storage");
  if (in_.accept('=')) values(weight, pending);
  return weight;
}

void WeightParser::allocate(Pending& pending) {
  if (pending.bytes) return;
  const std::size_t bytes = pending.storage->bytes;
  if (bytes > max_allocation - allocated_) in_.fail("the text's weights need more than 1 GiB");
  allocated_ += bytes;
  pending.bytes = std::make_shared<std::vector<std::byte>>(bytes);
  pending.storage->owner = pending.bytes;
  pending.storage->data = pending.bytes->data();
}

// Row-major over the elements, wherever the strides put them.
template <typename F>
void WeightParser::for_each_element(const Weight& weight, std::byte* base, F&& f) {
  std::vector<std::int64_t> index(weight.sizes.size(), 0);
  const std::int64_t count = weight.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = weight.storage_offset;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * weight.strides[d];
    f(i, base + offset * size_of(weight.dtype));
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < weight.sizes[d]) break;
      index[d] = 0;
    }
  }
}

namespace {

// `to` as copies of `element`; no bytes, or a whole number of them.
void splat(std::span<const std::byte> element, std::span<std::byte> to) {
  if (to.empty()) return;
  std::ranges::copy(element, to.begin());
  for (std::size_t done = element.size(); done < to.size(); done *= 2)
    std::copy_n(to.begin(), std::min(done, to.size() - done), to.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace

void WeightParser::values(const Weight& weight, Pending& pending) {
  // A stride of 0 lets few bytes have very many elements: those count too.
  if (weight.numel() > static_cast<std::int64_t>(max_allocation))
    in_.fail("the weight has too many elements for values");
  allocate(pending);
  std::byte* base = pending.bytes->data();
  if (in_.accept('[')) return listed(weight, base);
  const std::string word = in_.word("values");
  in_.expect('(');
  if (word == "bytes") {
    hexadecimal(weight, base);
  } else if (!text::has_decimal_text(weight.dtype)) {
    in_.fail("weights of this dtype take bytes(\"...\")");
  } else if (word == "rand") {
    auto state = static_cast<std::uint64_t>(in_.integer());
    for_each_element(weight, base, [&](std::int64_t, std::byte* element) {
      text::write_element(weight.dtype, next_normal(state), element);
    });
  } else if (word == "splat") {
    std::byte element[8];
    const auto size = static_cast<std::size_t>(size_of(weight.dtype));
    if (!text::parse_element(weight.dtype, in_.number_text(), element))
      in_.fail("expected a value of the weight's dtype");
    if (weight.is_contiguous()) {
      splat(std::span(element, size), std::span(base + weight.storage_offset * size, weight.nbytes()));
    } else {
      for_each_element(weight, base, [&](std::int64_t, std::byte* to) { std::copy_n(element, size, to); });
    }
  } else {
    in_.fail("expected [..], rand(SEED), splat(VALUE) or bytes(\"...\")");
  }
  in_.expect(')');
}

void WeightParser::listed(const Weight& weight, std::byte* base) {
  for_each_element(weight, base, [&](std::int64_t i, std::byte* element) {
    if (i > 0) in_.expect(',');
    if (!text::parse_element(weight.dtype, in_.number_text(), element))
      in_.fail("expected a value of the weight's dtype");
  });
  in_.expect(']');
}

void WeightParser::hexadecimal(const Weight& weight, std::byte* base) {
  const std::string digits = in_.string();
  const auto size = static_cast<std::size_t>(size_of(weight.dtype));
  if (digits.size() != weight.nbytes() * 2 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    in_.fail("expected " + std::to_string(weight.nbytes() * 2) + " hexadecimal digits");
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for_each_element(weight, base, [&](std::int64_t i, std::byte* element) {
    for (std::size_t b = 0; b < size; ++b) {
      const std::size_t at = (static_cast<std::size_t>(i) * size + b) * 2;
      element[b] = static_cast<std::byte>(nibble(digits[at]) * 16 + nibble(digits[at + 1]));
    }
  });
}

}  // namespace ttc::ir
