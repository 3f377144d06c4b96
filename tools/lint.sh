#!/usr/bin/env bash
# Formatting, the house's arrows, clang-tidy, ruff and mypy. Prints what is wrong and exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.h' '*.cc')
echo "clang-format: ${#sources[@]} files"
clang-format-19 --dry-run -Werror "${sources[@]}"
echo "arrows"
python3 tools/check_arrows.py
echo "ruff"
.venv/bin/ruff check -q tools tests
.venv/bin/ruff format -q --check tools tests
echo "mypy"
.venv/bin/mypy --strict tools tests/python
.venv/bin/mypy --strict tests/torch
echo "clang-tidy"
cmake --preset tidy > /dev/null
# Sources only: tests and benches repeat the same headers, and gtest's macros are not ours to mend.
mapfile -t checked < <(git ls-files 'src/*.cc' 'apps/*.cc')
printf '%s\0' "${checked[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-19 -p build/tidy --quiet 2> build/tidy.log || { cat build/tidy.log; exit 1; }
echo "lint: clean"
