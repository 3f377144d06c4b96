#!/usr/bin/env bash
# Rewrites the golden texts from what the programs say now, then runs the tests that read them. Read the diff before
# committing it.
set -euo pipefail
cd "$(dirname "$0")/.."
TESSERA_UPDATE_GOLDEN=1 ctest --preset release -R 'BadInput|BadConfig|PairText' > /dev/null || true
TESSERA_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -q tests/python > /dev/null || true
git --no-pager diff --stat -- tests
# A crash or a wrong exit code shows here; only the texts were rewritten.
ctest --preset release -R 'BadInput|BadConfig|PairText'
.venv/bin/python -m pytest -q tests/python
