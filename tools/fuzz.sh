#!/usr/bin/env bash
# Builds the fuzz targets and runs each COUNT times on the seeds it names, under ASan and UBSan with limits on
# time and memory. Prints what share of the mutants parsed and reached the checks, and the line coverage of the
# readers. Usage: tools/fuzz.sh [COUNT]   (default 10000)
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-10000}

tool() { command -v "$1-19" || command -v "$1" || echo "/usr/lib/llvm-19/bin/$1"; }
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers -j "$(nproc)"
build=build/fuzz/tests/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
for seeds in "$build"/fuzz_*.seeds; do
  target=${seeds%.seeds}
  name=$(basename "$target")
  [ -x "$target" ] || continue
  mkdir -p "$work/$name/corpus" "$build/crashes"
  while read -r folder; do
    [ -d "$folder" ] && find "$folder" -maxdepth 1 \( -name '*.json' -o -name '*.yaml' -o -name '*.csv' -o -name '*.txt' \) -exec cp -t "$work/$name/corpus" {} +
  done < "$seeds"
  if ! LLVM_PROFILE_FILE="$work/$name/profile" "$target" -runs="$count" -seed=1 -max_len=65536 -timeout=10 \
      -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="$build/crashes/$name-" "$work/$name/corpus" > "$work/$name/log" 2>&1; then
    tail -n 40 "$work/$name/log"
    failed=1
  fi
  grep -hE 'mutants|peak_rss_mb|average_exec' "$work/$name/log" || true
  if [ -f "$work/$name/profile" ]; then
    "$profdata" merge -sparse "$work/$name/profile" -o "$work/$name/merged"
    "$cov" export -summary-only -instr-profile="$work/$name/merged" "$target" > "$work/$name/coverage.json"
    python3 - "$work/$name/coverage.json" "$target.covers" "$name" <<'PY'
import json, os, sys
prefixes = [line.strip() for line in open(sys.argv[2]) if line.strip()]
files = json.load(open(sys.argv[1]))["data"][0]["files"]
covered = total = 0
for file in files:
    path = os.path.relpath(file["filename"])
    if not any(path.startswith(prefix) for prefix in prefixes):
        continue
    lines = file["summary"]["lines"]
    covered, total = covered + lines["covered"], total + lines["count"]
    print(f"  {path}: {lines['percent']:.1f} % of {lines['count']} lines")
print(f"{sys.argv[3]}: {100 * covered / max(total, 1):.1f} % of {total} reader lines covered")
PY
  fi
done
exit "$failed"
