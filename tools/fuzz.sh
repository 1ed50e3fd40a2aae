#!/usr/bin/env bash
# tools/fuzz.sh [NAME...]: builds the fuzzers (preset fuzz) and runs each, or those named, for FUZZ_SECONDS (60).
#
# What a fuzzer finds interesting stays in build/fuzz-corpus/NAME, so that the next run goes on from there; files in
# tests/data/fuzz/NAME, if there are any, are where the first run starts. An input that crashes a fuzzer is kept as
# build/fuzz-crashes/NAME-*, and run again with: build/fuzz/src/NAME FILE
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
jobs=${JOBS:-$(nproc)}
build=${FUZZ_BUILD:-build/fuzz}
corpora=build/fuzz-corpus
crashes=build/fuzz-crashes

cmake --preset fuzz -B "$build" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null || exit 1
# The fuzzers only: the other programs would have to be linked with libFuzzer's main, too.
mapfile -t fuzzers < <(cmake --build "$build" --target help | sed -n 's/^\([a-z0-9_]*_fuzz\): phony.*/\1/p' | sort)
if [ $# -gt 0 ]; then fuzzers=("$@"); fi
if [ ${#fuzzers[@]} -eq 0 ]; then
  echo "there are no fuzzers (src/*/*_fuzz.cc, listed under FUZZERS in src/CMakeLists.txt)"
  exit 0
fi
cmake --build "$build" --parallel "$jobs" --target "${fuzzers[@]}" || exit 1

mkdir -p "$crashes"
failed=0
for fuzzer in "${fuzzers[@]}"; do
  corpus=$corpora/$fuzzer
  log=$corpora/$fuzzer.log
  mkdir -p "$corpus"
  places=("$corpus")
  if [ -d "tests/data/fuzz/$fuzzer" ]; then places+=("tests/data/fuzz/$fuzzer"); fi
  program=$(find "$build/src" -name "$fuzzer" -type f -perm -u+x | head -n 1)
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
       -artifact_prefix="$crashes/$fuzzer-" "${places[@]}" >"$log" 2>&1; then
    outcome=ok
  else
    outcome=FAILED
    failed=1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  printf '%-6s  %-28s %10s runs, corpus of %s\n' "$outcome" "$fuzzer" "${runs:-?}" "$(find "$corpus" -type f | wc -l)"
  if [ "$outcome" = FAILED ]; then
    grep -m 1 -E 'ERROR: |runtime error: ' "$log" | sed 's/^/        /'
    sed -n 's/^artifact_prefix.*written to /        the input: /p' "$log"
    echo "        all of it: $log"
  fi
done
exit $failed
