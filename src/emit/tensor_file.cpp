// The header is written from the root on: parents before what they refer to, each table behind its vtable.
#include "emit/tensor_file.h"

#include <cstring>
#include <vector>

#include "support/error.h"

namespace ttc::emit {
namespace {

// FlatBuffers: little-endian, offsets to what lies behind, tables that say by a vtable where each field is.
class FlatBuffer {
 public:
  struct Field {
    std::uint16_t slot, size;  // slot: 0, 1, ... of the table; 4 bytes for an offset
    std::uint64_t value = 0;
  };

  FlatBuffer() { reserve(4, 4); }

  // A table's position; its fields' positions go to `at`, in order.
  std::size_t table(const std::vector<Field>& fields, std::vector<std::size_t>* at = nullptr) {
    std::uint16_t slots = 0, body = 4;
    std::vector<std::uint16_t> places;
    for (const Field& field : fields) {
      slots = std::max<std::uint16_t>(slots, field.slot + 1);
      body = static_cast<std::uint16_t>((body + field.size - 1) / field.size * field.size);
      places.push_back(body);
      body = static_cast<std::uint16_t>(body + field.size);
    }
    const std::size_t vtable = reserve(4 + std::size_t{2} * slots, 2);
    put(vtable, 4 + 2 * slots, 2), put(vtable + 2, body, 2);
    const std::size_t start = reserve(body, 4);
    put(start, start - vtable, 4);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      put(vtable + 4 + std::size_t{2} * fields[i].slot, places[i], 2);
      put(start + places[i], fields[i].value, fields[i].size);
      if (at != nullptr) at->push_back(start + places[i]);
    }
    return start;
  }
  std::size_t numbers(const std::vector<std::uint32_t>& values) {
    const std::size_t start = reserve(4 + 4 * values.size(), 4);
    put(start, values.size(), 4);
    for (std::size_t i = 0; i < values.size(); ++i) put(start + 4 + 4 * i, values[i], 4);
    return start;
  }
  // A struct of 64-bit numbers.
  std::size_t longs(const std::vector<std::uint64_t>& values) {
    const std::size_t start = reserve(8 * values.size(), 8);
    for (std::size_t i = 0; i < values.size(); ++i) put(start + 8 * i, values[i], 8);
    return start;
  }
  void refer(std::size_t field, std::size_t target) { put(field, target - field, 4); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t reserve(std::size_t size, std::size_t alignment) {
    // Behind the size of the header, 8 bytes, so alignment counts from here too.
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    return at;
  }
  void put(std::size_t at, std::uint64_t value, std::size_t size) { std::memcpy(bytes_.data() + at, &value, size); }
  std::string bytes_;
};

std::uint64_t data_type_code(ttrt::DataType dtype) {
  using ttrt::DataType;
  switch (dtype) {
    case DataType::bfloat16:
      return 0;
    case DataType::float32:
      return 1;
    case DataType::uint32:
      return 2;
    case DataType::bfloat8_b:
      return 3;
    case DataType::bfloat4_b:
      return 4;
    case DataType::uint8:
      return 5;
    case DataType::uint16:
      return 6;
    case DataType::int32:
      return 7;
    default:
      break;
  }
  throw usage_error("TT-NN's files hold no tensors of " + std::string(to_string(dtype)));
}

constexpr std::uint16_t offset = 4;  // bytes
constexpr std::uint32_t tile = 32;

void write_spec(FlatBuffer& to, std::size_t field, const ttrt::TensorSpec& spec) {
  std::vector<std::size_t> at, layout, page, shape;
  to.refer(field, to.table({{0, offset}, {1, offset}}, &at));
  to.refer(at[0], to.numbers({spec.logical.begin(), spec.logical.end()}));
  const bool tiled = spec.layout == ttrt::Layout::tile;
  constexpr std::uint64_t row_major_page = 1, tile_page = 2;
  to.refer(at[1], to.table({{0, 1, data_type_code(spec.dtype)},
                            {1, 1, tiled ? tile_page : row_major_page},
                            {2, offset},
                            {3, offset},
                            {4, offset}},
                           &layout));
  if (tiled) {
    to.refer(layout[2], to.table({{0, offset}}, &page));
    to.refer(page[0], to.table({{0, 4, tile}, {1, 4, tile}}));
  } else {
    to.refer(layout[2], to.table({}));
  }
  to.refer(layout[3], to.table({}));  // interleaved, DRAM
  to.refer(layout[4], to.numbers(tiled ? std::vector<std::uint32_t>{tile, tile} : std::vector<std::uint32_t>{1}));
}

std::string header(const ttrt::TensorSpec& spec, std::uint64_t size) {
  FlatBuffer to;
  std::vector<std::size_t> tensor, shard, mesh, coordinate;
  to.refer(0, to.table({{0, offset}, {1, offset}, {2, offset}}, &tensor));
  write_spec(to, tensor[0], spec);
  to.refer(tensor[1], to.table({{0, offset}}, &mesh));
  to.refer(mesh[0], to.numbers({1, 1}));
  const std::size_t shards = to.numbers({0});
  to.refer(tensor[2], shards);
  constexpr std::uint64_t inline_storage = 1;
  to.refer(shards + 4, to.table({{0, 1, inline_storage}, {1, offset}, {2, offset}}, &shard));
  to.refer(shard[1], to.longs({0, size}));
  to.refer(shard[2], to.table({{0, offset}}, &coordinate));
  to.refer(coordinate[0], to.numbers({0, 0}));
  return to.bytes();
}

}  // namespace

std::string tensor_file(const ttrt::TensorSpec& spec, std::span<const std::byte> bytes) {
  std::string table = header(spec, bytes.size());
  constexpr std::size_t alignment = 64;
  const std::uint64_t size = (sizeof size + table.size() + alignment - 1) / alignment * alignment - sizeof size;
  table.resize(size);
  std::string out(sizeof size, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  out += table;
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

}  // namespace ttc::emit
