// Data movement against index arithmetic on the host, over formats, layouts and random ragged shapes. Every check also
// looks at the raw bytes: padding must be zero.
#include <algorithm>
#include <cstring>
#include <functional>

#include "device/move.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/device_test_util.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

std::vector<std::byte> upload(const HostTensor& host, const TensorSpec& spec) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.nbytes()), std::byte{0xA5});
  tilize_from_host(host, spec, bytes.data());
  return bytes;
}

// Where output element i comes from: (input, element), or input -1 for fill.
struct Origin {
  int input = 0;
  std::int64_t element = 0;
};
using Rule = std::function<Origin(const Shape& out_index)>;

void check_move(const Move& move, const std::vector<HostTensor>& hosts, const std::vector<TensorSpec>& specs,
                const Rule& rule, double fill = 0) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const std::byte*> pointers;
  for (std::size_t i = 0; i < hosts.size(); ++i) inputs.push_back(upload(hosts[i], specs[i]));
  for (const auto& bytes : inputs) pointers.push_back(bytes.data());
  const TensorSpec& out = move.output();
  std::vector<std::byte> result(static_cast<std::size_t>(out.nbytes()) + 64, std::byte{0x5A});
  move.run(pointers, result.data());
  for (std::size_t i = 0; i < 64; ++i) REQUIRE(result[result.size() - 64 + i] == std::byte{0x5A});

  HostTensor expected = empty_host(torch_dtype(out.dtype), out.logical);
  const auto size = static_cast<std::size_t>(ttc::size_of(expected.dtype));
  HostTensor filler = empty_host(DType::f64, {1});
  filler.as<double>()[0] = fill;
  const HostTensor fill_element = convert(filler, expected.dtype);
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const Origin from = rule(unravel(i, out.logical));
    const std::byte* value = from.input < 0 ? fill_element.data
                                            : hosts[static_cast<std::size_t>(from.input)].data +
                                                  from.element * static_cast<std::int64_t>(size);
    std::memcpy(expected.data + i * static_cast<std::int64_t>(size), value, size);
  }
  // Packing the expected values from the host gives zero padding; all values are exact in every format, so the bytes
  // must agree.
  std::vector<std::byte> wanted = upload(expected, out);
  result.resize(wanted.size());
  std::string shapes;
  for (const std::int64_t size : out.logical) shapes += " " + std::to_string(size);
  INFO(to_string(out.dtype) << " " << to_string(out.layout) << " output" << shapes);
  const bool same_bytes = result == wanted;
  REQUIRE(same_bytes);
}

Shape random_shape(Random& random, int rank) {
  static const std::int64_t sizes[] = {1, 2, 3, 5, 16, 31, 32, 33, 48, 64, 70};
  Shape shape;
  std::int64_t budget = 40000;
  for (int d = 0; d < rank; ++d) {
    std::int64_t size = sizes[between(random, 0, 10)];
    if (size > budget) size = 1;
    budget /= size;
    shape.push_back(size);
  }
  std::shuffle(shape.begin(), shape.end(), random);
  return shape;
}

TensorSpec random_spec(Random& random, Shape shape) {
  TensorSpec spec;
  spec.logical = std::move(shape);
  spec.dtype = all_formats()[static_cast<std::size_t>(between(random, 0, 8))];
  if (between(random, 0, 2) == 0) spec.dtype = DataType::bfloat16;
  if (!is_block_format(spec.dtype) && between(random, 0, 3) == 0) spec.layout = Layout::row_major;
  return spec;
}

}  // namespace

TEST_CASE("permute puts every element where its index says", "[device][move]") {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const TensorSpec spec = random_spec(random, random_shape(random, static_cast<int>(between(random, 0, 5))));
    const HostTensor host = values_for(spec.dtype, spec.logical, random);
    Shape dims(spec.logical.size());
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<std::int64_t>(d);
    std::shuffle(dims.begin(), dims.end(), random);
    check_move(plan_permute(spec, dims), {host}, {spec}, [&](const Shape& index) {
      Shape source(index.size());
      for (std::size_t d = 0; d < dims.size(); ++d) source[static_cast<std::size_t>(dims[d])] = index[d];
      return Origin{0, ravel(source, spec.logical)};
    });
  }
}

TEST_CASE("transpose of the last two dims, aligned and ragged", "[device][move]") {
  Random random(2);
  for (const DataType format : all_formats())
    for (const Shape& shape : {Shape{64, 96}, Shape{2, 3, 33, 70}, Shape{2, 32, 1}, Shape{1, 48}, Shape{3, 64, 40}}) {
      const TensorSpec spec{shape, format, Layout::tile, {}};
      const HostTensor host = values_for(format, shape, random);
      check_move(plan_transpose(spec, -1, -2), {host}, {spec}, [&](Shape index) {
        std::swap(index[index.size() - 1], index[index.size() - 2]);
        return Origin{0, ravel(index, shape)};
      });
    }
}

TEST_CASE("reshape keeps the row-major order", "[device][move]") {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const TensorSpec spec = random_spec(random, random_shape(random, static_cast<int>(between(random, 0, 4))));
    const HostTensor host = values_for(spec.dtype, spec.logical, random);
    Shape shape;  // a random factorisation of the same volume
    std::int64_t rest = volume(spec.logical);
    while (rest > 1 && shape.size() < 4) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t n = 1; n <= rest; ++n)
        if (rest % n == 0) divisors.push_back(n);
      shape.push_back(
          divisors[static_cast<std::size_t>(between(random, 0, static_cast<std::int64_t>(divisors.size()) - 1))]);
      rest /= shape.back();
    }
    shape.push_back(rest);
    check_move(plan_reshape(spec, shape), {host}, {spec}, [&](const Shape& index) {
      return Origin{0, ravel(index, shape)};
    });
  }
}

TEST_CASE("slice with starts, counts and steps", "[device][move]") {
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    const TensorSpec spec = random_spec(random, random_shape(random, static_cast<int>(between(random, 1, 4))));
    const HostTensor host = values_for(spec.dtype, spec.logical, random);
    Shape start, count, step;
    for (const std::int64_t size : spec.logical) {
      step.push_back(between(random, 0, 2) ? 1 : between(random, -3, 3));
      if (step.back() == 0) step.back() = 1;
      start.push_back(between(random, 0, 2) ? (step.back() > 0 ? 0 : size - 1) : between(random, 0, size - 1));
      const std::int64_t room = step.back() > 0 ? size - 1 - start.back() : start.back();
      count.push_back(between(random, 0, 1) ? room / std::abs(step.back()) + 1
                                            : between(random, 0, room / std::abs(step.back()) + 1));
    }
    check_move(plan_slice(spec, start, count, step), {host}, {spec}, [&](Shape index) {
      for (std::size_t d = 0; d < index.size(); ++d) index[d] = start[d] + index[d] * step[d];
      return Origin{0, ravel(index, spec.logical)};
    });
  }
}

TEST_CASE("concat along every dim", "[device][move]") {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const TensorSpec first = random_spec(random, random_shape(random, static_cast<int>(between(random, 1, 4))));
    const std::size_t dim =
        static_cast<std::size_t>(between(random, 0, static_cast<std::int64_t>(first.logical.size()) - 1));
    std::vector<TensorSpec> specs;
    std::vector<HostTensor> hosts;
    for (std::int64_t n = between(random, 1, 3); n-- > 0;) {
      specs.push_back(first);
      if (between(random, 0, 1)) specs.back().logical[dim] = between(random, 0, 65);
      hosts.push_back(values_for(first.dtype, specs.back().logical, random));
    }
    check_move(plan_concat(specs, static_cast<std::int64_t>(dim)), hosts, specs, [&](Shape index) {
      int input = 0;
      while (index[dim] >= specs[static_cast<std::size_t>(input)].logical[dim])
        index[dim] -= specs[static_cast<std::size_t>(input++)].logical[dim];
      return Origin{input, ravel(index, specs[static_cast<std::size_t>(input)].logical)};
    });
  }
}

TEST_CASE("expand and repeat", "[device][move]") {
  Random random(6);
  for (int i = 0; i < 200; ++i) {
    Shape small = random_shape(random, static_cast<int>(between(random, 0, 3))), shape = small;
    for (std::size_t d = 0; d < small.size(); ++d)
      if (between(random, 0, 1)) small[d] = 1;
    if (between(random, 0, 1)) shape.insert(shape.begin(), between(random, 1, 3));
    const std::size_t added = shape.size() - small.size();
    const TensorSpec spec = random_spec(random, small);
    const HostTensor host = values_for(spec.dtype, small, random);
    check_move(plan_expand(spec, shape), {host}, {spec}, [&](const Shape& index) {
      Shape source(index.begin() + static_cast<std::ptrdiff_t>(added), index.end());
      for (std::size_t d = 0; d < small.size(); ++d)
        if (small[d] == 1) source[d] = 0;
      return Origin{0, ravel(source, small)};
    });
    Shape repeats(shape.size());
    for (std::int64_t& n : repeats) n = between(random, 0, 5) ? between(random, 1, 3) : 0;
    check_move(plan_repeat(spec, repeats), {host}, {spec}, [&](const Shape& index) {
      Shape source(index.begin() + static_cast<std::ptrdiff_t>(added), index.end());
      for (std::size_t d = 0; d < small.size(); ++d) source[d] %= small[d];
      return Origin{0, ravel(source, small)};
    });
  }
}

TEST_CASE("pad with a value, unpad with negative padding", "[device][move]") {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const TensorSpec spec = random_spec(random, random_shape(random, static_cast<int>(between(random, 0, 4))));
    const HostTensor host = values_for(spec.dtype, spec.logical, random);
    Shape before, after;
    for (const std::int64_t size : spec.logical) {
      before.push_back(between(random, 0, 1) ? 0 : between(random, -size / 2, 5));
      after.push_back(between(random, 0, 1) ? 0 : between(random, -size / 2, 40));
    }
    const double fill = between(random, 0, 1) ? 0 : 1;
    check_move(
        plan_pad(spec, before, after, fill), {host}, {spec},
        [&](Shape index) {
          for (std::size_t d = 0; d < index.size(); ++d) {
            index[d] -= before[d];
            if (index[d] < 0 || index[d] >= spec.logical[d]) return Origin{-1, 0};
          }
          return Origin{0, ravel(index, spec.logical)};
        },
        fill);
  }
}

TEST_CASE("attention heads are split, turned and merged", "[device][move]") {
  Random random(8);
  for (const DataType format : {DataType::bfloat16, DataType::float32, DataType::bfloat8_b})
    for (const std::int64_t head_dim : {8, 32, 48, 64})
      for (const std::int64_t length : {5, 32, 70}) {
        const std::int64_t heads = 3, first = head_dim * heads, width = first * 3;
        const TensorSpec spec{{2, length, width}, format, Layout::tile, {}};
        const HostTensor host = values_for(format, spec.logical, random);
        for (const bool transposed : {false, true}) {
          const Move move =
              plan_split_heads(spec, {.heads = heads, .head_dim = head_dim, .first = first, .transposed = transposed});
          REQUIRE(move.output().logical ==
                  (transposed ? Shape{2, heads, head_dim, length} : Shape{2, heads, length, head_dim}));
          check_move(move, {host}, {spec}, [&](Shape index) {
            if (transposed) std::swap(index[2], index[3]);
            return Origin{0, ravel({index[0], index[2], first + index[1] * head_dim + index[3]}, spec.logical)};
          });
        }
        const TensorSpec split{{2, heads, length, head_dim}, format, Layout::tile, {}};
        const HostTensor split_host = values_for(format, split.logical, random);
        check_move(plan_merge_heads(split), {split_host}, {split}, [&](const Shape& index) {
          return Origin{0, ravel({index[0], index[2] / head_dim, index[1], index[2] % head_dim}, split.logical)};
        });
      }
}

TEST_CASE("TILE to ROW_MAJOR and back loses nothing", "[device][move]") {
  Random random(9);
  for (int i = 0; i < 100; ++i) {
    TensorSpec spec = random_spec(random, random_shape(random, static_cast<int>(between(random, 0, 4))));
    if (is_block_format(spec.dtype)) continue;
    const HostTensor host = values_for(spec.dtype, spec.logical, random);
    for (const Layout layout : {Layout::tile, Layout::row_major})
      check_move(plan_to_layout(spec, layout), {host}, {spec}, [&](const Shape& index) {
        return Origin{0, ravel(index, spec.logical)};
      });
  }
}

TEST_CASE("block-format tiles that move whole keep their bytes", "[device][move]") {
  Random random(10);
  const TensorSpec spec{{2, 64, 96}, DataType::bfloat4_b, Layout::tile, {}};
  std::vector<std::byte> in(static_cast<std::size_t>(spec.nbytes())), out(in.size());
  for (std::byte& byte : in)
    byte = static_cast<std::byte>(between(random, 0, 255));  // any bytes, not only what a packer makes
  const Move swap = plan_permute(TensorSpec{{2, 3, 64, 32}, DataType::bfloat4_b, Layout::tile, {}}, Shape{1, 0, 2, 3});
  swap.run(in.data(), out.data());
  const std::size_t matrix = 2 * 576;
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      REQUIRE(std::equal(in.begin() + (a * 3 + b) * matrix, in.begin() + (a * 3 + b + 1) * matrix,
                         out.begin() + (b * 2 + a) * matrix));
}

TEST_CASE("regrouped block formats round only where a group spans too many powers of two", "[device][move]") {
  const TensorSpec spec{{32, 32}, DataType::bfloat8_b, Layout::tile, {}};
  HostTensor host = empty_host(DType::f32, {32, 32});
  for (std::int64_t i = 0; i < 1024; ++i)
    host.as<float>()[i] = std::ldexp(1.0F, static_cast<int>(i / 32) % 16);  // constant in a row
  const Move turn = plan_transpose(spec, 0, 1);
  std::vector<std::byte> out(1088);
  turn.run(upload(host, spec).data(), out.data());
  HostTensor back = empty_host(DType::f32, {32, 32});
  untilize_to_host(turn.output(), out.data(), back);
  for (std::int64_t r = 0; r < 32; ++r)
    for (std::int64_t c = 0; c < 32; ++c) {
      const double value = std::ldexp(1.0, static_cast<int>(c) % 16), step = std::ldexp(1.0, 15 - 6);
      INFO("column " << c);
      CHECK(std::fabs(back.as<float>()[r * 32 + c] - value) <= step / 2);
      if (value >= step) CHECK(back.as<float>()[r * 32 + c] == value);
    }
}

TEST_CASE("rows are gathered by index from tables of any format", "[device][move]") {
  Random random(11);
  for (const DataType table_format : {DataType::bfloat16, DataType::float32, DataType::bfloat8_b, DataType::bfloat4_b})
    for (const Layout table_layout : {Layout::tile, Layout::row_major})
      for (const DataType out_format : {DataType::bfloat16, DataType::float32})
        for (const Layout out_layout : {Layout::tile, Layout::row_major}) {
          if (is_block_format(table_format) && table_layout == Layout::row_major) continue;
          const TensorSpec table{{70, between(random, 0, 1) ? 64 : 1100}, table_format, table_layout, {}};
          const Layout index_layout = between(random, 0, 1) ? Layout::tile : Layout::row_major;
          const TensorSpec indices{
              {2, 37}, between(random, 0, 1) ? DataType::uint32 : DataType::int32, index_layout, {}};
          const HostTensor table_host = values_for(table_format, table.logical, random);
          HostTensor index_host = empty_host(DType::i64, indices.logical);
          for (std::int64_t i = 0; i < 74; ++i) index_host.as<std::int64_t>()[i] = between(random, 0, 69);
          const GatherRows gather(table, indices, out_format, out_layout);
          REQUIRE(gather.output().logical == Shape{2, 37, table.logical[1]});
          std::vector<std::byte> out(static_cast<std::size_t>(gather.output().nbytes()), std::byte{0x77});
          gather.run(upload(table_host, table).data(), upload(index_host, indices).data(), out.data());
          HostTensor expected = empty_host(DType::f32, gather.output().logical);
          for (std::int64_t i = 0; i < expected.numel(); ++i)
            expected.as<float>()[i] = static_cast<float>(
                at(table_host,
                   index_host.as<std::int64_t>()[i / table.logical[1]] * table.logical[1] + i % table.logical[1]));
          const bool same_bytes = out == upload(expected, gather.output());
          REQUIRE(same_bytes);
        }
}

TEST_CASE("a gather names the index that is out of range", "[device][move]") {
  const TensorSpec table{{10, 32}, DataType::bfloat16, Layout::tile, {}},
      indices{{3}, DataType::int32, Layout::row_major, {}};
  const GatherRows gather(table, indices, DataType::bfloat16, Layout::tile);
  std::vector<std::byte> t(static_cast<std::size_t>(table.nbytes())),
      out(static_cast<std::size_t>(gather.output().nbytes()));
  for (const std::int32_t bad : {10, -1}) {
    const std::int32_t values[3] = {0, bad, 9};
    try {
      gather.run(t.data(), reinterpret_cast<const std::byte*>(values), out.data());
      FAIL("accepted index " << bad);
    } catch (const ttc::Error& error) {
      CHECK(std::string(error.what()).find("index " + std::to_string(bad)) != std::string::npos);
    }
  }
}

TEST_CASE("moves that cannot be are refused with ttc::Error", "[device][move]") {
  const TensorSpec spec{{4, 32, 64}, DataType::bfloat16, Layout::tile, {}};
  CHECK_THROWS_AS(plan_permute(spec, Shape{0, 1}), ttc::Error);
  CHECK_THROWS_AS(plan_permute(spec, Shape{0, 1, 1}), ttc::Error);
  CHECK_THROWS_AS(plan_permute(spec, Shape{0, 1, 3}), ttc::Error);
  CHECK_THROWS_AS(plan_transpose(spec, 0, -4), ttc::Error);
  CHECK_THROWS_AS(plan_reshape(spec, Shape{4, 32, 63}), ttc::Error);
  CHECK_THROWS_AS(plan_reshape(spec, Shape{-4, -32, 64}), ttc::Error);
  CHECK_THROWS_AS(plan_reshape(spec, Shape{std::int64_t{1} << 62, 4}), ttc::Error);
  CHECK_THROWS_AS(plan_expand(spec, Shape{std::int64_t{1} << 62, 4, 32, 64}), ttc::Error);
  CHECK_THROWS_AS(plan_slice(spec, {0, 0, 60}, {4, 32, 8}, {1, 1, 1}), ttc::Error);
  CHECK_THROWS_AS(plan_slice(spec, {0, 0, 0}, {4, 32, 33}, {1, 1, 2}), ttc::Error);
  CHECK_THROWS_AS(plan_slice(spec, {0, 0, 3}, {4, 32, 5}, {1, 1, -1}), ttc::Error);
  CHECK_THROWS_AS(plan_expand(spec, Shape{4, 32, 128}), ttc::Error);
  CHECK_THROWS_AS(plan_expand(spec, Shape{32, 64}), ttc::Error);
  CHECK_THROWS_AS(plan_expand(TensorSpec{{1, 1}, DataType::bfloat16, Layout::tile, {}}, Shape{1 << 20, 1 << 20}),
                  ttc::Error);
  CHECK_THROWS_AS(plan_repeat(spec, Shape{std::int64_t{1} << 60, 1, 1}), ttc::Error);
  CHECK_THROWS_AS(plan_pad(spec, {0, 0, -70}, {0, 0, 0}), ttc::Error);
  CHECK_THROWS_AS(plan_split_heads(spec, {.heads = 3, .head_dim = 32}), ttc::Error);
  CHECK_THROWS_AS(plan_merge_heads(spec), ttc::Error);
  CHECK_THROWS_AS(plan_concat(std::vector<TensorSpec>{}, 0), ttc::Error);
  CHECK_THROWS_AS(plan_concat(std::vector<TensorSpec>{spec, {{4, 31, 64}, DataType::bfloat16, Layout::tile, {}}}, 2),
                  ttc::Error);
  CHECK_THROWS_AS(plan_to_layout(TensorSpec{{4, 4}, DataType::bfloat8_b, Layout::tile, {}}, Layout::row_major),
                  ttc::Error);
}
