// See host_reasons.h. Families go by the operator's name without namespace and overload; a name that ends in '*' stands
// for all that begin so. Operators that passes write out where they can are here too, for when they cannot.
#include "ops/host_reasons.h"

#include <algorithm>
#include <array>

namespace ttrt {
namespace {

struct Family {
  std::string_view names;  // separated by blanks
  std::string_view reason;
};

constexpr std::array families{
    Family{"nonzero nonzero_numpy argwhere masked_select unique _unique _unique2 unique_dim unique_consecutive "
           "unique_dim_consecutive bincount one_hot where repeat_interleave masked_scatter",
           "the size of its result, or the place of each element, depends on values"},
    Family{"bernoulli rand rand_like randn randn_like randint randint_like randperm normal normal_functional "
           "multinomial uniform exponential geometric log_normal cauchy random poisson binomial dropout native_dropout "
           "feature_dropout alpha_dropout feature_alpha_dropout rrelu rrelu_with_noise rrelu_with_noise_functional "
           "_fused_dropout fractional_max_pool2d fractional_max_pool3d",
           "it draws random numbers, which come from PyTorch's generator"},
    Family{"fft_* _fft_* stft istft view_as_real view_as_complex polar complex real imag conj _conj resolve_conj "
           "conj_physical _conj_physical angle view_as_real_copy view_as_complex_copy _neg_view resolve_neg",
           "it is about complex numbers, for which the device has no format"},
    Family{"linalg_inv linalg_inv_ex inverse linalg_det _linalg_det det slogdet linalg_slogdet _linalg_slogdet "
           "linalg_qr linalg_svd _linalg_svd linalg_svdvals svd linalg_cholesky linalg_cholesky_ex cholesky "
           "cholesky_solve cholesky_inverse linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh _linalg_eigh "
           "linalg_solve _linalg_solve_ex linalg_solve_ex linalg_solve_triangular triangular_solve linalg_lstsq "
           "linalg_pinv pinverse linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp "
           "matrix_exp linalg_matrix_rank linalg_cond linalg_householder_product ormqr geqrf logdet linalg_ldl_factor "
           "linalg_matrix_power matrix_power",
           "it takes a matrix apart one element after the other, in float32"},
    Family{"item _local_scalar_dense is_nonzero equal allclose Bool Int Float ScalarImplicit _assert_async "
           "_assert_scalar sym_* _assert_tensor_metadata",
           "its result is a number for the host"},
    Family{"mode median nanmedian kthvalue quantile nanquantile",
           "the device sorts lines and picks their largest elements, but has no other order statistics"},
    Family{"digamma polygamma mvlgamma i0 igamma igammac special_* lgamma_ hypergeometric zeta",
           "it is a special function that the vector unit has no kernel for"},
    Family{"nansum nanmean isposinf isneginf signbit isreal",
           "it tells NaN from infinities, or zeros by their signs, which bfloat16 tensors of the device do not hold"},
    Family{"isclose nextafter float_power frexp",
           "it is about the last bits of float32 or float64, which the activation format does not have"},
    Family{"grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator",
           "it reads at positions between elements that are computed at run time"},
    Family{"histc histogram histogramdd _histogramdd_bin_edges",
           "counting is by integers with a bin of their own only"},
    Family{
        "conv3d _convolution_mode conv_tbc conv_transpose3d slow_conv3d max_pool3d max_pool3d_with_indices avg_pool3d "
        "adaptive_avg_pool3d _adaptive_avg_pool3d adaptive_max_pool3d upsample_trilinear3d upsample_nearest3d "
        "replication_pad3d reflection_pad3d",
        "windows over three dims have no kernel"},
    Family{"adaptive_max_pool1d adaptive_max_pool2d max_unpool2d max_unpool3d max_pool1d_with_indices "
           "max_pool2d_with_indices fractional",
           "the places of largest elements of windows have no kernel"},
    Family{"_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_nearest_exact3d",
           "weights of windows whose size depends on the scale have no kernel"},
    Family{"scatter_reduce scatter index_reduce index_put _index_put_impl _unsafe_index_put put index_fill take",
           "indices that repeat are joined by sums only, and tensors are indexed by their dims"},
    Family{"ctc_loss _ctc_loss nll_loss nll_loss_forward nll_loss2d_forward nll_loss_nd cross_entropy_loss "
           "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward",
           "a loss over alignments or classes, which inference has no use for"},
    Family{"mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits "
           "soft_margin_loss poisson_nll_loss gaussian_nll_loss triplet_margin_loss cosine_embedding_loss",
           "a loss, of which the device has the mean and the sum of differences and their squares"},
    Family{"gradient trapezoid trapz rot90 msort isin im2col col2im cumulative_trapezoid",
           "PyTorch computes it from operators that this form of the graph does not spell out; run_decompositions() "
           "does"},
    Family{"hstack vstack dstack column_stack row_stack hsplit vsplit dsplit tensor_split channel_shuffle "
           "pixel_shuffle pixel_unshuffle broadcast_tensors movedim moveaxis adjoint aminmax",
           "only its forms over known sizes and equal ranks are written out for the device"},
    Family{"embedding_bag _embedding_bag _embedding_bag_forward_only embedding_renorm renorm",
           "bags of rows and rows that are changed as they are read have no kernel"},
    Family{"einsum bilinear _trilinear tensordot kron linalg_cross cross cdist _cdist_forward pdist _pdist_forward "
           "linalg_vander vander linalg_vector_norm cosine_similarity block_diag cartesian_prod combinations",
           "only forms of it that are one matrix product, or few enough elements, are written out for the device"},
    Family{"diagonal diag diag_embed diagonal_scatter diagonal_copy trace as_strided as_strided_scatter unfold "
           "as_strided_copy",
           "only diagonals and windows of known sizes are written out for the device"},
    Family{"lstm gru rnn_tanh rnn_relu _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell mkldnn_rnn_layer",
           "a recurrence is written out for the device only where its length is known"},
    Family{"quantize_per_tensor quantize_per_channel dequantize fake_quantize_* _fake_quantize_* int_repr q_scale",
           "integers with scales of their own are no format of the device"},
    Family{"batch_norm native_batch_norm _native_batch_norm_legit _batch_norm_impl_index instance_norm "
           "_native_batch_norm_legit_functional",
           "statistics of the batch are for training"},
    Family{"round nan_to_num ldexp clamp clamp_min clamp_max remainder pow bitwise_left_shift bitwise_right_shift "
           "searchsorted bucketize local_response_norm count_nonzero addr addmv logit",
           "only its forms over floats or 32-bit integers are served"},
    Family{"empty empty_like empty_permuted empty_strided new_empty new_empty_strided empty_quantized",
           "memory that nobody has written has no values to compute with"},
    Family{"addmm linear matmul", "the device multiplies matrices of floats"},
    Family{"copy_ set_ resize_ fill_ zero_ add_ mul_ sub_ div_ index_put_ scatter_ masked_fill_ copy set",
           "it writes into memory that others may see"},
};

// "aten.linalg_vector_norm.default" -> "linalg_vector_norm"
std::string_view stem_of(std::string_view op) {
  const std::size_t first = op.find('.');
  if (first == std::string_view::npos || op.substr(0, first) != "aten") return {};
  const std::size_t second = op.find('.', first + 1);
  return op.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
}

bool holds(std::string_view names, std::string_view stem) {
  while (!names.empty()) {
    const std::size_t blank = std::min(names.find(' '), names.size());
    const std::string_view name = names.substr(0, blank);
    if (name == stem || (name.ends_with('*') && stem.starts_with(name.substr(0, name.size() - 1)))) return true;
    names.remove_prefix(std::min(blank + 1, names.size()));
  }
  return false;
}

}  // namespace

std::string_view host_reason(std::string_view op) {
  const std::string_view stem = stem_of(op);
  if (stem.empty()) return {};
  const auto* found =
      std::find_if(families.begin(), families.end(), [&](const Family& family) { return holds(family.names, stem); });
  return found == families.end() ? std::string_view() : found->reason;
}

}  // namespace ttrt
