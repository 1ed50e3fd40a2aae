#!/usr/bin/env bash
# tools/system_packages.sh: installs what building and testing Plimsoll needs from Debian's or Ubuntu's packages.
# Installs only what is missing; asks for sudo only then. With --dev, also the tools of `make check` and `make fuzz`.
set -euo pipefail

# pypy3 and libunwind, which its sampler loads, are for the tests of recording on PyPy.
packages=(
  cmake ninja-build g++ ccache pkg-config git
  python3 python3-venv python3-dev python3-pip pypy3 libunwind-dev
  libelf-dev libdw-dev libbz2-dev liblzma-dev libzstd-dev liblz4-dev zlib1g-dev libminizip-dev libsqlite3-dev libcapstone-dev
  libfmt-dev libcli11-dev libtomlplusplus-dev libprotozero-dev libgtest-dev
)
# Boost 1.81 or newer: Debian 12 has it beside its default 1.74.
if apt-cache show libboost1.81-dev >/dev/null 2>&1; then packages+=(libboost1.81-dev); else packages+=(libboost-dev); fi
if [ "${1:-}" = --dev ]; then
  packages+=(clang libclang-rt-dev clang-tidy clang-format lld libbenchmark-dev valgrind debootstrap protobuf-compiler golang-go)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "please install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
