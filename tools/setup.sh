#!/usr/bin/env bash
# Installs what the build and the tests need, when it is missing: Debian packages, and a .venv for Python.
#   tools/setup.sh          to build, test and run
#   tools/setup.sh --dev    also linters, sanitizer and fuzzing tools
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build libgtest-dev libgmock-dev libcli11-dev libfmt-dev libyaml-cpp-dev nlohmann-json3-dev
          libjsoncpp-dev libsqlite3-dev python3-venv)
requirements=requirements.txt
if [ "${1:-}" = --dev ]; then
  packages+=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev llvm-19)
fi

missing=()
for package in "${packages[@]}"; do
  case "$package" in
    # Tools that may have come from elsewhere are good as they are.
    g++) command -v g++ > /dev/null && continue ;;
    cmake) command -v cmake > /dev/null && continue ;;
    ninja-build) command -v ninja > /dev/null && continue ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2> /dev/null && continue ;;
  esac
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'install ok installed' || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then
    run=()
  elif command -v sudo > /dev/null; then
    run=(sudo)
  else
    echo "setup: these packages are missing and need root to install: ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  "${run[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi

# The stamp holds the requirements it was made from.
if ! cmp -s "$requirements" .venv/requirements.installed; then
  echo "setup: making .venv"
  python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r "$requirements"
  cp "$requirements" .venv/requirements.installed
fi
