#!/usr/bin/env bash
# Our schedules in PyTorch's own loader and runtime (tests/torch). The lane's own line says whether it ran.
# Without PyTorch it is left out; TESSERA_TORCH=required makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
tools/setup.sh --torch || status=$?
[ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
if [ "$status" = 3 ]; then
  echo "torch lane: DID NOT RUN: pip finds no CPU build of $(head -n 1 requirements-torch.txt) for this Python." \
    "Point pip to an index that has one, or install any build of that version into .venv, and run tools/test_torch.sh."
  [ "${TESSERA_TORCH:-}" != required ]
  exit
fi
echo "torch lane: runs with torch $(.venv/bin/python -c 'import torch; print(torch.__version__)')"
.venv/bin/python -m pytest -q tests/torch
