// Constants that device operators take packed become uint8 tiles [tile rows of all matrices, tile columns, bytes of a
// tile] in device order. The bytes are made when a writer or the runtime asks for them, one tensor at a time; a
// constant that several operators take in the same form and format is packed once, and the originals go where nobody
// needs them any more.
#include <map>
#include <tuple>

#include "common.h"
#include "device/tile_formats.h"
#include "pass/call.h"
#include "support/error.h"

namespace ttc::pack_pass {
namespace {

using Form = ttrt::Packed::Form;

std::vector<std::byte> pack(const ir::Weight& weight, const ttrt::Packed& packed, const ttrt::TensorSpec& spec) {
  std::vector<std::byte> tiles(static_cast<std::size_t>(spec.nbytes()));
  ttrt::tilize_from_host(ttrt::packed_matrix(view_of(weight), packed, spec), spec, tiles.data());
  return tiles;
}

class Packer {
 public:
  explicit Packer(PassContext& context) : context_(context) {}

  void run() {
    ir::walk(*context_.model.graph, [&](ir::Node* node) {
      const ttrt::OpRecord* record = is_device_node(*node) ? ttrt::find_op(node->op()) : nullptr;
      if (record && !record->packed.empty()) pack_operands(*node, *record);
    });
    if (context_.changed) context_.model.drop_unused_weights();
  }

 private:
  void pack_operands(ir::Node& node, const ttrt::OpRecord& record) {
    std::optional<std::variant<ttrt::BoundCall, Reason>> call;  // once a weight asks for it
    for (const ttrt::Packed& packed : record.packed) {
      const int index = node.schema()->index_of(packed.name);
      ir::Value* value = index < 0 ? nullptr : node.operand(static_cast<std::size_t>(index));
      const ir::Weight* weight = value ? context_.model.weight_of(value) : nullptr;
      if (!weight || already_packed(*value, *weight)) continue;
      if (!call)
        call = concrete_call(record, node.args(), context_.shapes, {.activation = context_.options.activation});
      const auto* bound = std::get_if<ttrt::BoundCall>(&*call);
      if (!bound) return;  // of a rewritten file that has no shapes: its weights are as they were written
      node.set_arg(static_cast<std::size_t>(index),
                   constant(*value, *weight, packed, *bound->call.tensor(packed.name)));
      context_.changed = true;
    }
  }

  static bool already_packed(const ir::Value& value, const ir::Weight& weight) {
    return weight.dtype == DType::u8 && value.type.rank() == 3;
  }

  ir::Value* constant(const ir::Value& value, const ir::Weight& weight, const ttrt::Packed& packed,
                      const ttrt::TensorSpec& spec) {
    ir::Value*& known = packed_[Key{weight.storage.get(), weight.storage_offset, weight.sizes, weight.strides,
                                    packed.form, packed.arrange, spec.logical, spec.dtype}];
    if (known) return known;
    auto storage = std::make_shared<ir::Storage>();
    storage->bytes = static_cast<std::size_t>(spec.nbytes());
    if (!weight.storage->absent()) storage->produce = [weight, packed, spec] { return pack(weight, packed, spec); };
    ir::Weight tiles;
    tiles.dtype = DType::u8;
    tiles.sizes = {spec.batch() * spec.tile_rows(), spec.tile_cols(), spec.nbytes() / spec.tiles()};
    tiles.strides = ttrt::contiguous_strides(tiles.sizes);
    tiles.storage = std::move(storage);
    const std::string name = ir::weight_input(&value)->target + "_" + std::string(ttrt::to_string(spec.dtype));
    return known = context_.model.add_constant(name, std::move(tiles));
  }

  using Key = std::tuple<const ir::Storage*, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>, Form,
                         decltype(ttrt::Packed::arrange), ttrt::Shape, ttrt::DataType>;
  PassContext& context_;
  std::map<Key, ir::Value*> packed_;
};

void run(PassContext& context) { Packer(context).run(); }

}  // namespace
}  // namespace ttc::pack_pass

TTC_REGISTER_PASS({"pack", "Pack the weights of device operators into tiles of their format", ttc::pack_pass::run});
