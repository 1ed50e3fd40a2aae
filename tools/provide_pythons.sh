#!/usr/bin/env bash
# Provides the Python interpreters of Plimsoll's test matrix that a stable
# Debian does not have: CPython 3.13 to 3.15 and PyPy 3.11 as packaged in
# Debian sid, and free-threaded CPython built from sid's source packages.
#
# Everything but the packages needed to do so lands in one cache directory:
#
#   sid/              a minimal Debian sid, the home of the packaged interpreters
#   cpython-3.Nt/     the installation prefix of a free-threaded build
#   logs/, stamps/    output of each step; one stamp per finished step
#
# The packaged interpreters run on the host as ordinary executables, with no
# chroot and no mounts. Sid's C library is newer than the host's, so a copy of
# each executable is patched to start with sid's dynamic linker and to search
# sid's libraries first. Its place in the tree is kept, so Python finds its own
# prefix, and extension modules compiled on the host load as usual, because a
# newer C library and a newer libstdc++ accept what older ones accept.
#
# A run resumes where the last one stopped. To get newer interpreters, delete
# the directory and run again. The directory cannot be moved: its path is in
# the patched files.
set -euo pipefail

readonly fallback_mirror=http://deb.debian.org/debian
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

readonly packaged=(cp313 cp314 cp315 pypy311)
readonly built=(cp314t cp313t cp315t)
readonly host_tools=(debootstrap debian-archive-keyring patchelf dpkg-dev xz-utils)
# What the standard library's extension modules need to be built.
readonly build_packages=(
    build-essential pkg-config libssl-dev libffi-dev zlib1g-dev liblzma-dev
    libbz2-dev libsqlite3-dev libreadline-dev libncurses-dev uuid-dev libzstd-dev
)

usage() {
    cat <<'END'
Usage: provide_pythons.sh [--list] [--dir DIR]
Provides CPython 3.13, 3.14, 3.15 (also free-threaded) and PyPy 3.11.

  --list      show what is provided and what is missing, and change nothing
  --dir DIR   the cache directory (default: ~/.cache/plimsoll/pythons)

Needs root, apt and 2 GB of disk. Exits with 1 when an interpreter could not
be provided; those that could are usable all the same.
END
}

# Progress goes to the terminal even while a step's own output goes to its log.
exec 3>&1
say() { printf '%s\n' "$*" >&3; }
warn() { printf 'warning: %s\n' "$*" >&3; }
die() {
    printf 'provide_pythons.sh: %s\n' "$*" >&2
    exit 2
}

# cp314t -> 3.14, pypy311 -> 3.11
minor_of() {
    local digits=${1//[!0-9]/}
    printf '3.%s' "${digits:1}"
}

exe_of() {
    local minor
    minor=$(minor_of "$1")
    case $1 in
        pypy*) printf '%s/usr/bin/pypy%s' "$rootfs" "$minor" ;;
        *t) printf '%s/cpython-%st/bin/python%st' "$dir" "$minor" "$minor" ;;
        *) printf '%s/usr/bin/python%s' "$rootfs" "$minor" ;;
    esac
}

is_done() { [[ -e $stamps/$1 ]]; }

list() {
    local tag
    for tag in "${packaged[@]}" "${built[@]}"; do
        if is_done "$tag"; then
            printf '%-8s provided  %-10s %s\n' "$tag" "$(<"$stamps/$tag")" "$(exe_of "$tag")"
        else
            printf '%-8s missing\n' "$tag"
        fi
    done
}

failed=()
# run_step NAME COMMAND...: runs a command with its output in a log. A failure
# is reported and remembered, so that the other steps still get their turn.
# It must not be called as a condition: bash would then ignore "set -e" inside.
run_step() {
    local name=$1 log=$logs/$1.log status
    shift
    set +e
    (set -e; "$@") >"$log" 2>&1
    status=$?
    set -e
    if ((status != 0)); then
        failed+=("$name")
        say "FAILED: $name; the end of $log:"
        tail -n 8 "$log" | sed 's/^/    /' >&3
    fi
}

# ---- apt --------------------------------------------------------------------

# Installs what is missing of the named packages on the host. Names that this
# Debian release does not know are reported and left out.
install_on_host() {
    local package missing=() known=()
    for package in "$@"; do
        [[ $(dpkg --status "$package" 2>&1) == *' ok installed'* ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    apt-get update || warn "apt-get update had errors" # perhaps an unrelated repository's
    for package in "${missing[@]}"; do
        if apt-cache show "$package" >/dev/null; then
            known+=("$package")
        else
            warn "this system has no package $package"
        fi
    done
    ((${#known[@]})) || return 0
    say "installing on the host: ${known[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${known[@]}"
}

# The mirror the host's apt uses for Debian itself, if debootstrap can use it.
debian_mirror() {
    local uri
    uri=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' 2>/dev/null | grep -m 1 -E '^(https?|file):' || true)
    printf '%s' "${uri:-$fallback_mirror}"
}

# Reads sid's package lists with a private apt configuration, which leaves the
# host's /etc/apt alone but for its settings for proxies and logins.
update_index() {
    local apt=$work/apt
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    # Testing's sources are listed too, because a mirror may not have the
    # source of sid's newest upload, and an older one serves as well.
    cat >"$apt/sources.list" <<END
deb [signed-by=$keyring] $mirror sid main
deb-src [signed-by=$keyring] $mirror sid main
deb-src [signed-by=$keyring] $mirror testing main
END
    # _apt, apt's download user, may have no access to the cache directory.
    cat >"$apt/apt.conf" <<END
APT::Sandbox::User "root";
APT::Default-Release "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "/dev/null";
END
    say "reading the package lists of Debian sid from $mirror"
    apt-get --config-file "$work/apt/apt.conf" update
}

# ---- the minimal sid --------------------------------------------------------

# Removes a root file system, after unmounting what an interrupted debootstrap
# may have left mounted in it.
remove_rootfs() {
    local mounts
    mounts=$(awk -v top="$1/" 'index($2, top) == 1 { print $2 }' /proc/self/mounts | sort -r)
    [[ -z $mounts ]] || xargs -d '\n' umount <<<"$mounts"
    rm -rf --one-file-system "$1"
}

make_rootfs() {
    local tag base package include=libstdc++6,libzstd1 partial=$dir/sid.partial
    for tag in "${packaged[@]}"; do
        base=python$(minor_of "$tag")
        [[ $tag != pypy* ]] || base=pypy3
        for package in "$base" "$base-dev" "$base-venv"; do
            if apt-cache --config-file "$work/apt/apt.conf" show "$package" >/dev/null; then
                include+=,$package
            else
                warn "sid has no package $package"
            fi
        done
    done
    say "installing a minimal sid with the packaged interpreters (about 2 minutes)"
    remove_rootfs "$partial"
    # debootstrap does not know apt's proxy settings, its wget knows these.
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    export http_proxy https_proxy
    debootstrap --variant=minbase --keyring="$keyring" --include="$include" sid "$partial" "$mirror"
    rm -f "$partial"/var/cache/apt/archives/*.deb
    remove_rootfs "$rootfs"
    mv "$partial" "$rootfs"
    touch "$stamps/sid"
}

# Turns the interpreter of a tag in the minimal sid into one the host can run.
make_native() {
    local tag=$1 minor name exe
    minor=$(minor_of "$tag")
    exe=$(exe_of "$tag")
    name=$(basename "$exe")
    [[ -f $exe ]] || {
        say "$tag: sid has no $name"
        return 1
    }
    say "$tag: making $name run on the host"
    patch_executable "$exe"
    patch_build_settings "$name"
    check_interpreter "$tag"
}

# The original is kept beside the patched copy, so that a re-run starts afresh.
# The search path is a DT_RPATH and not a DT_RUNPATH: only the former also
# applies to what the extension modules loaded later depend on.
patch_executable() {
    local exe=$1 linker
    [[ -f $exe.debian ]] || cp -p "$exe" "$exe.debian"
    linker=$(readlink -f "$rootfs$(patchelf --print-interpreter "$exe.debian")")
    cp -p "$exe.debian" "$exe.new"
    patchelf --set-interpreter "$linker" --force-rpath \
        --set-rpath "$(dirname "$linker")" "$exe.new"
    mv "$exe.new" "$exe"
}

# Python computes its prefix when it starts, but what its build recorded says
# /usr: where headers, libpython and pip's wheels are. Compiling against the
# interpreter needs the real places. Tools such as /usr/bin/install are left to
# mean the host's.
patch_build_settings() {
    local name=$1 file usr=$rootfs/usr before='(^|[^[:alnum:]._/-])'
    for file in "$usr/lib/$name"/_sysconfig{data__*.py,_vars__*.json} \
        "$usr/lib"/*/pkgconfig/"${name/python/python-}"*.pc; do
        [[ -f $file && ! -L $file ]] || continue
        sed -E -i \
            -e "s#$before/usr(/lib|/include|/share|/bin/python)#\\1$usr\\2#g" \
            -e "s#$before/usr(/bin)?(['\": ,]|\$)#\\1$usr\\2\\3#g" "$file"
    done
    # Debian's pyconfig.h includes the real one by a path relative to
    # /usr/include, which on the host is another directory.
    for file in "$usr/include"/*-linux-gnu*/"$name"/pyconfig.h; do
        [[ ! -f $file ]] || cp "$file" "$usr/include/$name/pyconfig.h"
    done
}

# ---- free-threaded builds ---------------------------------------------------

# Downloads the upstream tarball of a source package: of its newest version, or
# of the newest one that the mirror really has.
fetch_source() {
    local package=$1 version versions apt=(--config-file "$work/apt/apt.conf")
    versions=$(apt-cache "${apt[@]}" showsrc --only-source "$package" |
        awk '$1 == "Version:" { print $2 }' | sort -u -V -r)
    for version in $versions; do
        if apt-get "${apt[@]}" source --download-only "$package=$version"; then
            say "$package: fetched the source of $version"
            return 0
        fi
        rm -f "$package"_*
        warn "$package: the mirror does not have the source of $version, which it lists"
    done
    say "$package: no source to be had"
    return 1
}

build_free_threaded() {
    local tag=$1 minor prefix tree=$work/$1 tarball
    minor=$(minor_of "$tag")
    prefix=$dir/cpython-${minor}t
    rm -rf "$tree" "$prefix"
    mkdir -p "$tree/build"
    cd "$tree"
    fetch_source "python$minor"
    tarball=$(find . -name '*.orig.tar.*' ! -name '*.asc')
    tar --extract --file "$tarball" --strip-components=1 --directory build
    cd build
    say "$tag: building $(basename "$tarball") without the GIL (about 5 minutes)"
    # Neither PGO nor LTO: they would take many times as long, and the tests
    # need this interpreter's behaviour, not its speed.
    ./configure --prefix="$prefix" --disable-gil --disable-test-modules \
        --with-ensurepip=install OPT='-DNDEBUG -O2 -Wall'
    make -j"$(nproc)"
    make altinstall
    cd "$dir"
    rm -rf "$tree"
    check_interpreter "$tag"
}

# Runs an interpreter and stamps it as provided when it works. A module, header
# or pip that is missing is reported, but does not make it useless.
check_interpreter() {
    local tag=$1 exe version lacks venv=$work/venv
    exe=$(exe_of "$tag")
    version=$("$exe" -I -c 'import sys; print(sys.version.split()[0])')
    lacks=$("$exe" -I -c '
import importlib, os, sysconfig
for name in ("ssl", "ctypes", "sqlite3", "zlib", "lzma", "bz2", "readline", "asyncio",
             "multiprocessing.synchronize", "venv"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print("module %s (%s)" % (name, error))
header = os.path.join(sysconfig.get_path("include"), "Python.h")
if not os.path.exists(header):
    print("header", header)
')
    [[ -z $lacks ]] || warn "$tag lacks: ${lacks//$'\n'/, }"
    if ! { "$exe" -m venv --clear "$venv" && "$venv/bin/python" -m pip --version; }; then
        warn "$tag cannot make a virtual environment with pip"
    fi
    rm -rf "$venv"
    printf '%s\n' "$version" >"$stamps/$tag"
    say "$tag: $version is ready, $exe"
}

# ---- main -------------------------------------------------------------------

provide_packaged() {
    local tag
    is_done sid || run_step sid make_rootfs
    for tag in "${packaged[@]}"; do
        if is_done sid && ! is_done "$tag"; then
            run_step "$tag" make_native "$tag"
        fi
    done
}

provide_built() {
    local tag
    run_step build-packages install_on_host "${build_packages[@]}"
    for tag in "${built[@]}"; do
        if ! is_done "$tag"; then
            run_step "$tag" build_free_threaded "$tag"
        fi
    done
}

# In a function, so that bash has read all of this file before it starts: a run
# takes minutes, in which the file may be edited.
main() {
    local listing=false
    dir=${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll/pythons
    while (($#)); do
        case $1 in
            --list) listing=true ;;
            --dir)
                [[ -n ${2:-} ]] || die "--dir needs a directory"
                dir=$2
                shift
                ;;
            -h | --help) usage && return ;;
            *) die "unknown argument $1; see --help" ;;
        esac
        shift
    done

    dir=$(realpath -m -- "$dir")
    # The path ends up in search paths, compiler flags and sed expressions.
    [[ $dir =~ ^[A-Za-z0-9/._+-]+$ ]] || die "the directory's path has unusual characters: $dir"
    readonly dir rootfs=$dir/sid work=$dir/work logs=$dir/logs stamps=$dir/stamps

    if $listing || [[ $(list) != *missing* ]]; then
        list
        return
    fi
    ((EUID == 0)) || die "must be run as root: debootstrap and apt need it"
    command -v apt-get >/dev/null || die "needs apt, that is, Debian or a relative"

    mkdir -p "$logs" "$stamps"
    exec 9>"$dir/lock"
    flock --nonblock 9 || die "another run is at work in $dir"
    rm -rf "$work"
    mkdir "$work"
    trap 'rm -rf "$work"' EXIT
    # debootstrap ends like any failed step when interrupted; the run has to end too.
    trap 'exit 130' INT TERM

    run_step host-tools install_on_host "${host_tools[@]}"
    mirror=$(debian_mirror)
    readonly mirror
    run_step index update_index
    provide_packaged
    provide_built

    list >&3
    if ((${#failed[@]})); then
        say "failed: ${failed[*]}; the logs are in $logs"
        exit 1
    fi
}

main "$@"
