#!/usr/bin/env bash
# tools/test_aarch64.sh: cross-compiles for aarch64 the layers below the command line, and runs the tests of what knows
# the architecture under user-mode emulation. The libraries that the other tests need are not there for aarch64.
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
rm -rf "$build"
mkdir -p "$build/include"
# Headers of these libraries are the same on every machine; the rest of the host's headers must stay out.
for header in boost elfutils libelf.h gelf.h dwarf.h zstd.h zstd_errors.h; do
  ln -s "/usr/include/$header" "$build/include/$header"
done
launcher=$(command -v ccache || true)
compile=($launcher aarch64-linux-gnu-g++ -std=c++20 -O2 -fPIC -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-restrict
  -Werror -DPLIMSOLL_VERSION='"test"' -Isrc -isystem "$build/include")
object_of() { echo "$build/$(echo "$1" | tr / _).o"; }

layers=(base os memory cpython native capture alloc nursery heap remote profile)
for layer in "${layers[@]}"; do
  for source in src/"$layer"/*.cc; do
    case "$source" in *_test.cc | *_fuzz.cc | *_bench.cc | *golden*) continue ;; esac
    "${compile[@]}" -c "$source" -o "$(object_of "$source")"
  done
done
echo "compiled ${layers[*]}"

# These need zlib, zstd and elfutils, which are not there: in the tests files have no symbols, and nothing is compressed.
rm "$(object_of src/base/chunk.cc)" "$(object_of src/base/chunk_stream.cc)" "$(object_of src/native/symbols.cc)"
cat >"$build/no_symbols.cc" <<'CODE'
#include "native/symbols.h"
namespace plimsoll::native {
SymbolTable SymbolTable::of_file(int) { return {}; }
SymbolTable SymbolTable::of_image(std::string_view) { return {}; }
std::string_view SymbolTable::find(std::uint64_t, std::uint64_t&) const { return {}; }
std::vector<std::pair<std::uint64_t, std::uint64_t>> SymbolTable::parts_of(std::string_view) const { return {}; }
std::optional<std::uint64_t> variable_in(int, std::string_view) { return std::nullopt; }
std::string demangled(std::string_view name) { return std::string(name); }
}  // namespace plimsoll::native
CODE

googletest=/usr/src/googletest/googletest
"${compile[@]}" -w -I"$googletest" -I"$googletest/include" -c "$googletest/src/gtest-all.cc" -o "$build/gtest.o"
"${compile[@]}" -w -I"$googletest/include" -c "$googletest/src/gtest_main.cc" -o "$build/gtest_main.o"
# The return addresses of the program itself are signed, those of the C library are not.
"${compile[@]}" -isystem "$googletest/include" -mbranch-protection=standard -c src/native/own_stack_test.cc -o "$build/own_stack_test.o"
tests=(src/memory/local_test.cc src/cpython/*_test.cc src/native/unwind_aarch64_test.cc src/capture/interleave_test.cc
  src/capture/native_sample_test.cc)
"${compile[@]}" -Wno-error -isystem "$googletest/include" "${tests[@]}" "$build"/own_stack_test.o "$build"/src_{base,os,memory,cpython,native,capture}_*.o \
  "$build/no_symbols.cc" "$build"/gtest.o "$build"/gtest_main.o -static-libstdc++ -static-libgcc -pthread -o "$build/tests"
# One test is about what Linux does with a blocked trap at a fault, which the emulation does otherwise; one needs symbols.
qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/tests" --gtest_brief=1 --gtest_filter='-LocalReader.SurvivesABadAddressWhileATrapIsPending:NativeSampleTest.HasPythonAndMachineCodeInTheOrderOfTheirCalls'
