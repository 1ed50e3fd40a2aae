#!/usr/bin/env bash
# tools/test_aarch64.sh: cross-compiles the layers that know the architecture for aarch64, with their tests, and runs
# them under user-mode emulation. The layers above are compiled only: their libraries are not there for aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for package in g++-aarch64-linux-gnu qemu-user libgtest-dev; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

build=build/aarch64
mkdir -p "$build"
compile=(aarch64-linux-gnu-g++ -std=c++20 -O2 -fPIC -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-restrict -Werror
  -DPLIMSOLL_VERSION='"test"' -Isrc)

# Headers of Boost are the same on every machine; the rest of the host's headers must stay out.
ln -sfn /usr/include/boost "$build/boost"
for source in src/{base,os,memory,cpython,capture}/*.cc; do
  case "$source" in *_test.cc | *_fuzz.cc | *_bench.cc | *golden*) continue ;; esac
  "${compile[@]}" -isystem "$build" -c "$source" -o "$build/$(echo "$source" | tr / _).o"
done
echo "compiled base, os, memory, cpython, capture"

googletest=/usr/src/googletest/googletest
"${compile[@]}" -w -I"$googletest" -I"$googletest/include" -c "$googletest/src/gtest-all.cc" -o "$build/gtest.o"
"${compile[@]}" -w -I"$googletest/include" -c "$googletest/src/gtest_main.cc" -o "$build/gtest_main.o"
tests=(src/memory/local_test.cc src/cpython/*_test.cc)
"${compile[@]}" -Wno-error -isystem "$googletest/include" "${tests[@]}" "$build"/src_{base,memory,cpython}_*.o \
  "$build"/gtest.o "$build"/gtest_main.o -static -pthread -o "$build/tests"
qemu-aarch64 "$build/tests" --gtest_brief=1
