# shellcheck shell=bash
# Shared by up, test and benchmark: finding the toolchain, the system packages and the kernel's part.
# Sourced by them; `project` is the root of the checkout.

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Libraries for the build, and fusermount3 for mounting without being root.
build_packages=(fuse3 libfuse3-dev libsecret-1-dev libsqlite3-dev libsystemd-dev libgcrypt20-dev libcurl4-openssl-dev pkg-config libc6-dev)

say() { printf '==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  shift
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

missing_packages() {
  local package
  for package; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      printf '%s\n' "$package"
  done
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >&2
}

# Installs those of the named packages that are missing, and nothing when none is.
need_packages() {
  { command -v dpkg-query && command -v apt-get; } >/dev/null ||
    die "no apt-get here: this command sets up Debian and Ubuntu." \
      "Elsewhere install what these packages hold: $*" \
      "and build with: swift build -c release --static-swift-stdlib --product keyhole"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || command -v sudo >/dev/null ||
    die "packages are missing and there is no sudo. As root, run:" \
      "apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  # A fresh machine has no package lists, an old one has stale ones: both are cured by one update.
  apt_install "${missing[@]}" 2>/dev/null ||
    { as_root apt-get update -qq && apt_install "${missing[@]}"; } ||
    die "apt-get could not install: ${missing[*]}" "Its reason is above."
}

# A toolchain new enough for Package.swift, which names the version itself.
need_swift() {
  local required version
  required=$(sed -n '1s/.*swift-tools-version: *\([0-9.]*\).*/\1/p' "$project/Package.swift")
  command -v swift >/dev/null ||
    die "no swift in PATH: Keyhole is built with Swift $required or newer." \
      "Install a toolchain from https://www.swift.org/install/linux/ and open a new shell."
  version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)
  [[ -n $version ]] || die "'swift --version' fails:" "$(swift --version 2>&1 | head -n 3)"
  [[ $(printf '%s\n' "$required" "$version" | sort -V | head -n 1) == "$required" ]] ||
    die "Swift $required or newer is needed; $(command -v swift) is $version."
}

# Headers of a C++ library: a toolchain from an archive brings a compiler but not these. Their
# package's name has the version of GCC in it, so g++, which depends on it, stands for all.
need_cxx() {
  local clang
  clang=$(dirname "$(readlink -f "$(command -v swift)")")/clang++
  [[ -x $clang ]] || return 0
  printf '#include <string>\nint main() { return 0; }\n' |
    "$clang" -x c++ - -o /dev/null 2>/dev/null || need_packages g++
}

need_fuse() {
  [[ -e /dev/fuse ]] || as_root modprobe fuse 2>/dev/null || true
  [[ -c /dev/fuse ]] ||
    die "there is no /dev/fuse: this kernel or container has no FUSE." \
      "In a container: --device /dev/fuse --cap-add SYS_ADMIN. Else: modprobe fuse."
  [[ -r /dev/fuse && -w /dev/fuse ]] ||
    die "/dev/fuse is closed to $(id -un): $(stat -c '%A %U:%G' /dev/fuse)." \
      "The usual mode is 0666: sudo chmod 666 /dev/fuse"
}

# Everything that a build needs; more packages may be named.
set_up() {
  need_swift
  need_packages "${build_packages[@]}" "$@"
  need_cxx
  need_fuse
}

# unpack PACKAGE PROGRAM FOLDER: a program without the services of its package, which would be started. Where that can't be done,
# the tests that need it are left out.
unpack() {
  local folder=$project/.build/$3
  [[ -x $2 || -x $folder$2 ]] && return
  mkdir -p -- "$folder"
  (cd "$folder" && apt-get download "$1" && dpkg-deb -x "$1"_*.deb . && rm -- *.deb) >/dev/null 2>&1 || true
}

# The debug build, with optimized C++: a passphrase is derived by BoringSSL, six times as long without, and the tests do it hundreds of times.
build_debug() { swift build -Xcxx -O2 "$@"; }

build_release() {
  local folder=$project/.build/release-libraries
  mkdir -p -- "$folder"
  # CSecretLoader loads it when it is used. Linked, it would be loaded at each start of a command.
  describe_library libsecret-1 "$folder"
  link_runtimes_statically "$folder"
  describe_library fuse3 "$folder" "-L$folder $(pkg-config --libs fuse3)"
  export_nothing "$folder/symbols"
  say "building a release (the first time takes some minutes)"
  (cd "$project" && PKG_CONFIG_PATH=$folder swift build -c release --static-swift-stdlib --product "${1:-keyhole}" \
    --disable-local-rpath -Xlinker --version-script="$folder/symbols")
}

# Puts libraries of the compiler into a folder that the linker searches first. Each shared library is found, mapped and
# bound at each start of a command: 0.1 ms and more. Of the instructions of an empty Swift program libstdc++, of which Swift's
# runtime uses little, takes three quarters.
link_runtimes_statically() {
  local clang archive
  clang=$(dirname "$(readlink -f "$(command -v swift)")")/clang
  archive=$("$clang" -print-file-name=libstdc++.a)
  [[ $archive != /* ]] || ln -sf -- "$archive" "$1/libstdc++.a"
  echo 'INPUT(-lgcc_eh)' >"$1/libgcc_s.so"
}

# A version script for the linker. Each symbol that a program exports is looked up when it starts.
export_nothing() { echo '{ local: *; };' >"$1"; }

# Libraries that differ between the two releases are linked statically: Debian 13 has another libfuse3 (3.17 as
# libfuse3.so.4). Nothing that Keyhole calls needs ICU's tables of languages, 34 MB: icu-stub.c stands in for
# them, in the same archive, as of two archives that define a symbol the linker takes the first.
#
# The folder has to stand before those of other libraries, so their descriptions name no folder. Its name is
# always the same, or every package would be built from nothing.
prepare_libraries() {
  local folder=$1 archive clang
  archive=$(pkg-config --variable=libdir fuse3)/libfuse3.a
  [[ -e $archive ]] || die "there is no $archive; libfuse3-dev brings it"
  clang=$(dirname "$(readlink -f "$(command -v swift)")")/clang
  mkdir -p -- "$folder"
  "$clang" -O2 -DICU_DATA="$(icu_symbol "$clang")" -c "$project/mount-helpers/icu-stub.c" -o "$folder/icu.o"
  install -m 644 -- "$archive" "$folder/libfuse3.a"
  ar r "$folder/libfuse3.a" "$folder/icu.o"
  link_runtimes_statically "$folder"
  describe_library fuse3 "$folder" "-L$folder -lfuse3"
  describe_library libsecret-1 "$folder"
  export_nothing "$folder/symbols"
  echo 'SECTIONS { /DISCARD/ : { *(.eh_frame) } } INSERT AFTER .text;' >"$folder/no-unwinding"
}

# The pkg-config file that SwiftPM reads about a library of C, with other options for the linker, or none.
describe_library() {
  cat >"$2/$1.pc" <<PC
Name: $1
Description: $1, as it is linked here
Version: $(pkg-config --modversion "$1")
Cflags: $(pkg-config --cflags-only-I "$1")
Libs: ${3-}
PC
}

# Builds .build/portable/release/keyhole.
#
# Functions that are never called are left out, and of equal ones all but one; so are the 4 MB that say how to unwind
# the stack for an exception of C++, as none is thrown: Swift's errors are return values.
build_portable() {
  local folder=$project/.build/portable-libraries
  prepare_libraries "$folder"
  say "building a portable release"
  (cd "$project" && PKG_CONFIG_PATH=$folder swift build -c release --static-swift-stdlib --product keyhole \
    --disable-local-rpath --scratch-path .build/portable -Xswiftc -use-ld=lld \
    -Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections -Xcc -fdata-sections \
    -Xlinker --version-script="$folder/symbols" -Xlinker --icf=safe -Xlinker -O2 \
    -Xlinker -T -Xlinker "$folder/no-unwinding" -Xlinker --no-eh-frame-hdr \
    -Xlinker -z -Xlinker pack-relative-relocs)
}

# `icudt76_dat` of this toolchain.
icu_symbol() {
  local archive
  archive=$(dirname "$1")/../lib/swift_static/linux/lib_FoundationICU.a
  nm -A "$archive" 2>/dev/null | sed -nE 's/.* [RDd] (icudt[0-9]+_dat)$/\1/p' | head -n 1 | grep . ||
    die "this toolchain's ICU is not where it was expected: $archive"
}

# The kernel's word on a mount point, also of one whose file system has died.
mount_type() { findmnt -rn -o FSTYPE -M "$1" 2>/dev/null | tail -n 1; }

unmount_lazily() {
  fusermount3 -u -z "$1" 2>/dev/null || umount -l "$1" 2>/dev/null || true
}

# Unmounts whatever is mounted below a folder, the latest first: it may cover an earlier one.
unmount_below() {
  local folder point
  folder=$(realpath -- "$1") || return 0
  while IFS= read -r point; do
    unmount_lazily "$(printf '%b' "$point")"
  done < <(awk -v below="$folder/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac)
}

# The unprivileged user who runs the tests where root starts them.
test_user=${TEST_USER:-keyhole-test}

need_test_user() {
  id -u "$test_user" >/dev/null 2>&1 && return
  say "creating the user $test_user, who runs the tests"
  useradd --system --user-group --home-dir /nonexistent --shell /bin/bash "$test_user" ||
    die "the user $test_user can't be created: run the tests as an unprivileged user instead."
}

# Opens /dev/fuse to users, as udev does on desktops.
need_fuse_for() {
  setpriv --reuid="$1" --regid="$1" --init-groups test -r /dev/fuse -a -w /dev/fuse && return
  say "opening /dev/fuse to users (chmod 666)"
  chmod 666 /dev/fuse
}

# reachable_for USER SCRATCH FOLDER... -- COMMAND...: runs a command where USER can reach the folders.
#
# A folder that is closed to USER, or lies below one that is (a checkout in root's home), is bound to its own path in a
# mount namespace of the command's own, in which an empty file system covers the closed folder.
reachable_for() {
  local user=$1 scratch=$2 closed=() kept=() folder at
  shift 2
  while [[ $1 != -- ]]; do
    folder=$(readlink -f -- "$1")
    at=$folder
    shift
    setpriv --reuid="$user" --regid="$user" --init-groups test -x "$at/." && continue
    kept+=("$folder")
    while ! setpriv --reuid="$user" --regid="$user" --init-groups test -x "${at%/*}/."; do at=${at%/*}; done
    closed+=("$at")
  done
  shift
  if ((${#kept[@]} == 0)); then
    "$@"
    return
  fi
  # shellcheck disable=SC2016  # expanded by the shell inside
  unshare --mount --propagation private bash -c '
    set -e
    scratch=$1 count=$2
    shift 2
    kept=("${@:1:count}") closed=("${@:count+1:count}")
    for ((i = 0; i < count; i++)); do
      mkdir -p "$scratch/kept/$i"
      mount --bind "${kept[i]}" "$scratch/kept/$i"
    done
    for ((i = 0; i < count; i++)); do
      mountpoint -q "${closed[i]}" && continue
      mount -t tmpfs -o mode=755,size=1M none "${closed[i]}"
    done
    for ((i = 0; i < count; i++)); do
      mkdir -p "${kept[i]}"
      if [[ ${kept[i]} != "${closed[i]}" ]]; then
        mount --bind "$scratch/kept/$i" "${kept[i]}"
        continue
      fi
      # The folder itself is closed: its entries are bound, one by one.
      while IFS= read -r -d "" entry; do
        at="${kept[i]}/${entry##*/}"
        if [[ -d $entry && ! -L $entry ]]; then mkdir "$at"; else : >"$at"; fi
        mount --bind "$entry" "$at"
      done < <(find "$scratch/kept/$i" -mindepth 1 -maxdepth 1 -not -type l -print0)
    done
    shift $((2 * count))
    exec "$@"' bash "$scratch" "${#kept[@]}" "${kept[@]}" "${closed[@]}" "$@"
}
