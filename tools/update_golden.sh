#!/usr/bin/env bash
# Rewrites the golden texts from what the programs say now. Read the diff before committing it.
set -euo pipefail
cd "$(dirname "$0")/.."
TESSERA_UPDATE_GOLDEN=1 ctest --preset release -R 'BadInput|BadConfig|Golden' > /dev/null || true
TESSERA_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -q tests/python > /dev/null || true
git --no-pager diff --stat -- tests
