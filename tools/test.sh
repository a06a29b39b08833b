#!/usr/bin/env bash
# Sets everything up, builds, and runs the default tests; the last line is "N passed, N failed".
# Arguments go to `meson test`: ./tools/test.sh --suite unit
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

log=build/meson-logs/testlog.txt
status=0
# Time limits are there to end what hangs: a busy machine gets four times as long.
meson test -C build --no-rebuild --print-errorlogs --no-suite long --timeout-multiplier 4 "$@" || status=$?
# Meson counts programs; each prints its cases, which tools/count_tests.py adds up.
python tools/count_tests.py "$log"
exit $status
