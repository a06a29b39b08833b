#!/bin/sh
# Installs the libraries into a scratch folder, then configures, builds and runs a separate Meson project against them.
#   run.sh MESON BUILD_DIR SOURCE_DIR MODELS_DIR
set -eu
meson=$1 build=$2 source=$3 models=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$meson" install -C "$build" --no-rebuild --quiet --tags runtime,devel --destdir "$scratch/root"
pc=$(find "$scratch/root" -name ttrt.pc)
test -n "$pc"
export PKG_CONFIG_LIBDIR="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$scratch/root"
export LD_LIBRARY_PATH="$(dirname "$(find "$scratch/root" -name 'libttrt.so' | head -n 1)")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$meson" setup -Ddebug=false "$scratch/user" "$source/tests/install"
"$meson" compile -C "$scratch/user"
"$scratch/user/user" "$models/bert_small.pt2" "$scratch"
"$scratch/user/devices"
"$scratch/user/modules" "$models/bert_small.pt2"
"$scratch/user/parts"
"$scratch/user/dispatching" "$models/bert_small.pt2" "$scratch"
"$scratch/user/user_c" "$models/bert_small.pt2" "$scratch"
"$scratch/user/compiler" "$models/bert_small.pt2" "$models/bert_small.io.safetensors" "$models/bert_small.pt" "$scratch/compiled.pt2"
# The installed tool finds the libraries beside it.
env -u LD_LIBRARY_PATH "$(find "$scratch/root" -name ttc -type f -perm -u+x | head -n 1)" inspect "$scratch/compiled.pt2" > "$scratch/inspected"
grep -q tt.linear "$scratch/inspected"
