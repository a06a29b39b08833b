#!/bin/sh
# Installs the library into a scratch folder, then configures, builds and runs a separate Meson project against it.
#   run.sh MESON BUILD_DIR SOURCE_DIR MODEL
set -eu
meson=$1 build=$2 source=$3 model=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$meson" install -C "$build" --no-rebuild --quiet --tags runtime,devel --destdir "$scratch/root"
pc=$(find "$scratch/root" -name ttrt.pc)
test -n "$pc"
export PKG_CONFIG_LIBDIR="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$scratch/root"
export LD_LIBRARY_PATH="$(dirname "$(find "$scratch/root" -name 'libttrt.so' | head -n 1)")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$meson" setup "$scratch/user" "$source/tests/install"
"$meson" compile -C "$scratch/user"
"$scratch/user/user" "$model"
