#!/usr/bin/env bash
# Installs what the build and the tests need, when it is missing: Debian packages, and a .venv for Python.
#   tools/setup.sh          to build, test and run
#   tools/setup.sh --dev    also linters, sanitizer and fuzzing tools
#   tools/setup.sh --torch  also PyTorch: its CPU build. Exits with 3 where pip finds none;
#                           with TESSERA_TORCH=required it then takes any build, which may bring gigabytes of CUDA
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

if [ "${1:-}" = --torch ]; then
  # The first line is PyTorch itself.
  mapfile -t pins < requirements-torch.txt
  # PyTorch that is there already is good as it is, whichever build.
  if ! .venv/bin/python - "${pins[@]}" 2> /dev/null << 'END'
import sys
from importlib.metadata import version
sys.exit(any(version(name).split("+")[0] != wanted for name, wanted in (pin.split("==") for pin in sys.argv[1:])))
END
  then
    echo "setup: installing ${pins[*]}"
    install=(.venv/bin/python -m pip install -q --disable-pip-version-check --retries 1)
    if ! "${install[@]}" "${pins[0]}+cpu" "${pins[@]:1}" 2> .venv/torch.log; then
      if [ "${TESSERA_TORCH:-}" != required ] || ! "${install[@]}" "${pins[@]}" 2>> .venv/torch.log; then
        tail -n 1 .venv/torch.log >&2
        exit 3
      fi
    fi
  fi
fi
