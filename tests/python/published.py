"""Published tutorials and unit tests of TT-NN, run on the emulated module as they are: `python published.py FOLDER
[--cases N] [--seconds S] [--readme] [PATH...]`. FOLDER has the files of tenstorrent/tt-metal (Apache-2.0; a checkout of the
commit below, or these paths of it); they are not kept here and not fetched. Needs pytest and loguru. Of a test's cases N
are run, evenly chosen, each for at most S seconds; what the tests take from tt-metal's conftest.py, the device above
all, is in published_device.py. --readme writes the table into runtime/python/README.md."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Dict, List, Tuple

commit = "923191064229b23d448e8ff2cc5a7d5e23ebc343"
here = pathlib.Path(__file__).resolve().parent
root = here.parents[1]
tutorials = "ttnn/tutorials/basic_python"
units = "tests/ttnn/unit_tests"

paths = [
    f"{tutorials}/ttnn_add_tensors.py",
    f"{tutorials}/ttnn_basic_conv.py",
    f"{tutorials}/ttnn_basic_matrix_multiplication.py",
    f"{tutorials}/ttnn_basic_operations.py",
    f"{tutorials}/ttnn_clip_zero_shot_classification.py",
    f"{tutorials}/ttnn_mlp_inference_mnist.py",
    f"{tutorials}/ttnn_multihead_attention.py",
    f"{tutorials}/ttnn_simplecnn_inference.py",
    f"{units}/base_functionality/test_as_tensor.py",
    f"{units}/base_functionality/test_chunk.py",
    f"{units}/base_functionality/test_deallocate.py",
    f"{units}/base_functionality/test_dump_and_load.py",
    f"{units}/base_functionality/test_expand.py",
    f"{units}/base_functionality/test_getitem.py",
    f"{units}/base_functionality/test_model_preprocessing.py",
    f"{units}/base_functionality/test_reshape.py",
    f"{units}/base_functionality/test_roll.py",
    f"{units}/base_functionality/test_shape.py",
    f"{units}/base_functionality/test_squeeze.py",
    f"{units}/base_functionality/test_sub_device.py",
    f"{units}/base_functionality/test_tilize_untilize_2D.py",
    f"{units}/base_functionality/test_to_and_from_torch.py",
    f"{units}/base_functionality/test_to_layout.py",
    f"{units}/base_functionality/test_unsqueeze.py",
    f"{units}/base_functionality/test_view.py",
    f"{units}/operations/conv/test_conv1d.py",
    f"{units}/operations/conv/test_conv2d.py",
    f"{units}/operations/data_movement/test_backward_embedding.py",
    f"{units}/operations/data_movement/test_clone.py",
    f"{units}/operations/data_movement/test_concat.py",
    f"{units}/operations/data_movement/test_concat_iterative.py",
    f"{units}/operations/data_movement/test_core.py",
    f"{units}/operations/data_movement/test_creation.py",
    f"{units}/operations/data_movement/test_embedding.py",
    f"{units}/operations/data_movement/test_full.py",
    f"{units}/operations/data_movement/test_full_like.py",
    f"{units}/operations/data_movement/test_gather.py",
    f"{units}/operations/data_movement/test_interleaved_to_sharded.py",
    f"{units}/operations/data_movement/test_non_zero_indices.py",
    f"{units}/operations/data_movement/test_pad.py",
    f"{units}/operations/data_movement/test_permute.py",
    f"{units}/operations/data_movement/test_reallocate.py",
    f"{units}/operations/data_movement/test_repeat.py",
    f"{units}/operations/data_movement/test_repeat_interleave.py",
    f"{units}/operations/data_movement/test_slice.py",
    f"{units}/operations/data_movement/test_sort.py",
    f"{units}/operations/data_movement/test_stack.py",
    f"{units}/operations/data_movement/test_tilize.py",
    f"{units}/operations/data_movement/test_tilize_with_val_padding.py",
    f"{units}/operations/data_movement/test_tosa_gather.py",
    f"{units}/operations/data_movement/test_tosa_scatter.py",
    f"{units}/operations/data_movement/test_untilize_with_unpadding.py",
    f"{units}/operations/eltwise/test_activation.py",
    f"{units}/operations/eltwise/test_add.py",
    f"{units}/operations/eltwise/test_binary_bcast.py",
    f"{units}/operations/eltwise/test_binary_composite.py",
    f"{units}/operations/eltwise/test_binary_fp32.py",
    f"{units}/operations/eltwise/test_binary_int32.py",
    f"{units}/operations/eltwise/test_binary_maximum.py",
    f"{units}/operations/eltwise/test_binary_scalar.py",
    f"{units}/operations/eltwise/test_binaryng_ND.py",
    f"{units}/operations/eltwise/test_composite.py",
    f"{units}/operations/eltwise/test_div_ops.py",
    f"{units}/operations/eltwise/test_divide.py",
    f"{units}/operations/eltwise/test_elt_binary.py",
    f"{units}/operations/eltwise/test_eltwise_typecast.py",
    f"{units}/operations/eltwise/test_elu.py",
    f"{units}/operations/eltwise/test_exp2.py",
    f"{units}/operations/eltwise/test_expm1.py",
    f"{units}/operations/eltwise/test_fill.py",
    f"{units}/operations/eltwise/test_fmod.py",
    f"{units}/operations/eltwise/test_gcd.py",
    f"{units}/operations/eltwise/test_hardtanh.py",
    f"{units}/operations/eltwise/test_inplace.py",
    f"{units}/operations/eltwise/test_math.py",
    f"{units}/operations/eltwise/test_mul.py",
    f"{units}/operations/eltwise/test_nextafter.py",
    f"{units}/operations/eltwise/test_polyval.py",
    f"{units}/operations/eltwise/test_pow.py",
    f"{units}/operations/eltwise/test_relational.py",
    f"{units}/operations/eltwise/test_remainder.py",
    f"{units}/operations/eltwise/test_round.py",
    f"{units}/operations/eltwise/test_signbit.py",
    f"{units}/operations/eltwise/test_silu.py",
    f"{units}/operations/eltwise/test_sub.py",
    f"{units}/operations/eltwise/test_tanh_accuracy.py",
    f"{units}/operations/eltwise/test_ternary.py",
    f"{units}/operations/eltwise/test_ternary_composite.py",
    f"{units}/operations/eltwise/test_typecast_int.py",
    f"{units}/operations/eltwise/test_unary.py",
    f"{units}/operations/eltwise/test_unary_activation.py",
    f"{units}/operations/eltwise/test_unary_fp32.py",
    f"{units}/operations/eltwise/test_unary_ops_ttnn.py",
    f"{units}/operations/eltwise/test_unary_pow.py",
    f"{units}/operations/eltwise/test_where.py",
    f"{units}/operations/fused/test_batch_norm.py",
    f"{units}/operations/fused/test_group_norm.py",
    f"{units}/operations/fused/test_layer_norm.py",
    f"{units}/operations/fused/test_layer_norm_sharded.py",
    f"{units}/operations/fused/test_rms_norm.py",
    f"{units}/operations/fused/test_rms_norm_sharded.py",
    f"{units}/operations/fused/test_softmax.py",
    f"{units}/operations/matmul/test_addmm.py",
    f"{units}/operations/matmul/test_linear.py",
    f"{units}/operations/matmul/test_matmul.py",
    f"{units}/operations/matmul/test_matmul_deepseek.py",
    f"{units}/operations/pool/test_adaptive_pool2d.py",
    f"{units}/operations/pool/test_avgpool2d.py",
    f"{units}/operations/pool/test_maxpool2d.py",
    f"{units}/operations/pool/test_upsample.py",
    f"{units}/operations/reduce/test_argmax.py",
    f"{units}/operations/reduce/test_cumprod.py",
    f"{units}/operations/reduce/test_cumsum.py",
    f"{units}/operations/reduce/test_max.py",
    f"{units}/operations/reduce/test_reduction.py",
    f"{units}/operations/reduce/test_reduction_mean.py",
    f"{units}/operations/reduce/test_reduction_min.py",
    f"{units}/operations/reduce/test_reduction_on_batch.py",
    f"{units}/operations/reduce/test_sum.py",
    f"{units}/operations/reduce/test_topk.py",
    f"{units}/operations/transformers/test_concatenate_heads.py",
    f"{units}/operations/transformers/test_transformer.py",
    f"{units}/tensor/test_tensor_creation.py",
    f"{units}/tensor/test_tensor_ranks.py",
    f"{units}/tensor/test_tensor_serialization.py",
    f"{units}/tensor/test_tensor_to_list.py",
]


def environment(folder: pathlib.Path, *more: str) -> Dict[str, str]:
    places = [str(here), str(root / "runtime/python"), str(folder), *more]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "TT_METAL_HOME": str(folder)}


def script(folder: pathlib.Path, path: str, seconds: int) -> Tuple[int, int, List[str]]:
    """A tutorial as it is: passed, run, why not."""
    command = [sys.executable, "-m", "ttnn_emulated", "run", str(folder / path)]
    try:
        done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 0, 1, [f"longer than {seconds} s"]
    if done.returncode == 0:
        return 1, 1, []
    return 0, 1, [done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"]


def tests(folder: pathlib.Path, path: str, cases: int, seconds: int) -> Tuple[int, int, List[str]]:
    """A file of tests through pytest."""
    with tempfile.TemporaryDirectory() as place:
        results = pathlib.Path(place) / "results.json"
        command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "published_device", "-p", "no:cacheprovider"]
        command += ["--cases", str(cases), "--case-seconds", str(seconds), "--results", str(results), str(folder / path)]
        done = subprocess.run(command, cwd=folder, env=environment(folder, str(folder / "ttnn")), capture_output=True, text=True)  # tt_lib
        if not results.exists():
            return 0, 0, [(done.stdout + done.stderr).strip().splitlines()[-1]]
        found = json.loads(results.read_text())
    return found["passed"], found["passed"] + len(found["failed"]), found["failed"] + [f"skipped: {one}" for one in found["skipped"]]


def reasons(texts: List[str]) -> str:
    """The reasons, most frequent first, with how often."""
    counted = collections.Counter(re.sub(r"\s+", " ", one)[:110].replace("|", "\\|").replace("`", "'") for one in texts)
    listed = [f"{text}" + (f" ({times})" if times > 1 else "") for text, times in counted.most_common(4)]
    rest = len(counted) - len(listed)
    return "; ".join(listed + ([f"{rest} more"] if rest > 0 else []))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("paths", nargs="*")
    given = parser.parse_args()
    folder = given.folder.resolve()
    rows, whole = [], 0
    wanted = given.paths or paths
    for path in wanted:
        if not (folder / path).exists():
            rows.append(f"| {path} | | not in the folder |")
            continue
        run = script(folder, path, 5 * given.seconds) if path.startswith(tutorials) else tests(folder, path, given.cases, given.seconds)
        passed, total, why = run
        whole += passed == total > 0
        short = path.replace(tutorials + "/", "tutorial: ").replace(units + "/", "").replace("operations/", "")
        rows.append(f"| {short} | {passed} of {total} | {reasons(why)} |")
        print(rows[-1], flush=True)
    print(f"{whole} of {len(wanted)} pass whole")
    if given.readme:
        readme = root / "runtime/python/README.md"
        table = "\n".join(["| file | cases that pass | the others |", "|---|---|---|", *rows])
        begin, end = "<!-- published -->", "<!-- /published -->"
        text = readme.read_text()
        head, _, rest = text.partition(begin)
        readme.write_text(f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
