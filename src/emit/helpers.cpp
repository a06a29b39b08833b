// The texts of helpers.
#include "emit/helpers.h"

#include <map>

namespace ttc::emit {
namespace {

constexpr std::string_view causal_mask_text = R"py(@functools.lru_cache(maxsize=None)
def causal_mask(queries, keys, device):
    """[1, 1, queries, keys]: 1 where a query may see a key, 0 where the key comes later."""
    visible = torch.ones(1, 1, queries, keys).tril()
    return ttnn.from_torch(visible, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
)py";

constexpr std::string_view multicast_2d_text =
    R"py(def multicast_2d(*, grid, in0_block_w, subblock, block, per_core, fuse_batch=False, activation=None):
    """A matrix product over the rows and columns of a grid of cores; sizes in tiles."""
    return ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=grid,
        in0_block_w=in0_block_w,
        out_subblock_h=subblock[0],
        out_subblock_w=subblock[1],
        out_block_h=block[0],
        out_block_w=block[1],
        per_core_M=per_core[0],
        per_core_N=per_core[1],
        transpose_mcast=False,
        fused_activation=activation,
        fuse_batch=fuse_batch,
    )
)py";

constexpr std::string_view multicast_1d_text =
    R"py(def multicast_1d(*, grid, in0_block_w, subblock, block, per_core, mcast_in0=True, fuse_batch=False, activation=None):
    """A matrix product along one side of its result, over all cores of a grid; sizes in tiles."""
    return ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        compute_with_storage_grid_size=grid,
        in0_block_w=in0_block_w,
        out_subblock_h=subblock[0],
        out_subblock_w=subblock[1],
        out_block_h=block[0],
        out_block_w=block[1],
        per_core_M=per_core[0],
        per_core_N=per_core[1],
        fuse_batch=fuse_batch,
        fused_activation=activation,
        mcast_in0=mcast_in0,
    )
)py";

constexpr std::string_view dram_sharded_text = R"py(def dram_sharded(*, in0_block_w, per_core, activation=None):
    """A product of one row of tiles: each bank's share of the weight goes to the core beside it."""
    return ttnn.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(
        in0_block_w=in0_block_w,
        per_core_M=per_core[0],
        per_core_N=per_core[1],
        fused_activation=activation,
    )
)py";

constexpr std::string_view attention_program_text = R"py(def attention_program(device, *, exp_approx_mode, keys=32):
    """Attention over the whole grid, 32 queries at a time."""
    return ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=device.compute_with_storage_grid_size(),
        q_chunk_size=32,
        k_chunk_size=keys,
        exp_approx_mode=exp_approx_mode,
    )
)py";

constexpr std::string_view on_device_text = R"py(def on_device(tensor, *, dtype, device):
    """A torch tensor in tiles on the device; one that is there already as it is."""
    if isinstance(tensor, ttnn.Tensor):
        return tensor
    return ttnn.from_torch(tensor, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)
)py";

constexpr std::string_view write_back_text = R"py(def write_back(tensor, value):
    """What the model writes into an input that it was given: on the device in place, else on the host."""
    if isinstance(tensor, ttnn.Tensor):
        ttnn.copy(value, tensor)
    else:
        tensor.copy_(ttnn.to_torch(value))
)py";

constexpr std::string_view group_norm_text =
    R"py(def group_norm(x, *, groups, weight=None, bias=None, epsilon, memory_config, compute_kernel_config):
    """Each group of channels is a row for ttnn.layer_norm, beside the numbers of its channels, [groups, channels of one]."""
    sizes = list(x.shape)
    each = x.logical_volume() // (sizes[0] * sizes[1])
    count = sizes[1] // groups * each
    rows = ttnn.reshape(x, [sizes[0], groups, count])
    scales = None if weight is None else ttnn.repeat_interleave(weight, each, dim=1)
    shifts = None if bias is None else ttnn.repeat_interleave(bias, each, dim=1)
    normal = []
    for g in range(groups):
        row = ttnn.layer_norm(
            ttnn.slice(rows, [0, g, 0], [sizes[0], g + 1, count]),
            epsilon=epsilon,
            weight=None if scales is None else ttnn.slice(scales, [g, 0], [g + 1, count]),
            bias=None if shifts is None else ttnn.slice(shifts, [g, 0], [g + 1, count]),
            memory_config=memory_config,
            compute_kernel_config=compute_kernel_config,
        )
        normal.append(row)
    return ttnn.reshape(ttnn.concat(normal, dim=1), sizes, memory_config=memory_config)
)py";

constexpr std::string_view parts_text = R"py(def parts(x, runs, *, dim, memory_config):
    """Stretches of a tensor along a dim, from the first position of each to before its last, one behind the other."""
    taken = []
    for first, end in runs:
        starts, ends = [0] * len(x.shape), list(x.shape)
        starts[dim], ends[dim] = first, end
        taken.append(ttnn.slice(x, starts, ends))
    return ttnn.concat(taken, dim=dim, memory_config=memory_config)
)py";

constexpr std::string_view grouped_matmul_text =
    R"py(def grouped_matmul(x, weights, ends, *, memory_config, dtype, compute_kernel_config):
    """Rows in groups, each times a matrix of its own; where the groups end is read back."""
    rows, (width, columns) = x.shape[0], list(weights.shape)[1:]
    products, first = [], 0
    for group, end in enumerate(ttnn.to_torch(ends).flatten().tolist()):
        if end > first:
            product = ttnn.matmul(
                ttnn.slice(x, [first, 0], [end, width]),
                ttnn.reshape(ttnn.slice(weights, [group, 0, 0], [group + 1, width, columns]), [width, columns]),
                memory_config=memory_config,
                dtype=dtype,
                compute_kernel_config=compute_kernel_config,
            )
            products.append(product)
            first = end
    if first < rows:
        zeros = ttnn.zeros([rows - first, columns], dtype=dtype, layout=ttnn.TILE_LAYOUT, device=x.device())
        products.append(zeros)
    return ttnn.concat(products, dim=0, memory_config=memory_config)
)py";

const std::map<std::string_view, std::string_view>& helpers() {
  static const std::map<std::string_view, std::string_view> all{{"causal_mask", causal_mask_text},
                                                                {"multicast_2d", multicast_2d_text},
                                                                {"multicast_1d", multicast_1d_text},
                                                                {"dram_sharded", dram_sharded_text},
                                                                {"attention_program", attention_program_text},
                                                                {"group_norm", group_norm_text},
                                                                {"grouped_matmul", grouped_matmul_text},
                                                                {"on_device", on_device_text},
                                                                {"parts", parts_text},
                                                                {"write_back", write_back_text}};
  return all;
}

}  // namespace

std::string_view helper_text(std::string_view name) {
  const auto at = helpers().find(name);
  return at == helpers().end() ? std::string_view() : at->second;
}

std::vector<std::string_view> helper_names() {
  std::vector<std::string_view> out;
  for (const auto& [name, text] : helpers()) out.push_back(name);
  return out;
}

}  // namespace ttc::emit
