# shellcheck shell=bash
# The foreign programs: fetched at a fixed commit, built, and never kept in this repository.

# checkout FOLDER REPOSITORY COMMIT TARGET PATH...: the paths of a commit, from a checkout or a bare repository that is
# there, else cloned.
checkout() {
  local folder=$1 repository=$2 commit=$3 target=$4
  shift 4
  mkdir -p "$target"
  if [[ -z $folder ]]; then
    need_packages git
    folder=$target.git
    [[ -d $folder ]] || git clone --quiet --bare --filter=blob:none "$repository" "$folder" ||
      die "$repository can't be cloned: name a checkout of it by PJDFSTEST= or XFSTESTS=."
  fi
  git --git-dir "$(git -C "$folder" rev-parse --absolute-git-dir)" archive "$commit" -- "$@" | tar -x -C "$target" ||
    die "$folder has no commit $commit of $repository."
}

# Features that their configure scripts find on any Linux of today.
present() { printf -- '-DHAVE_%s=1\n' "$@"; }

build_pjdfstest() {
  local target=$1/pjdfstest flags
  [[ ! -x $target/pjdfstest ]] || return 0
  need_packages gcc libc6-dev openssl
  checkout "${PJDFSTEST-}" https://github.com/pjd/pjdfstest 85a8aea9e685999ef0540392fd80535f873d7ff7 "$target" pjdfstest.c tests
  : >"$target/config.h"
  mapfile -t flags < <(present SYS_SYSMACROS_H FCHMODAT FCHOWNAT FSTATAT LINKAT MKDIRAT MKFIFOAT MKNODAT LCHMOD \
    POSIX_FALLOCATE READLINKAT RENAMEAT SYMLINKAT UNLINKAT UTIMENSAT STRUCT_STAT_ST_ATIM STRUCT_STAT_ST_CTIM STRUCT_STAT_ST_MTIM)
  cc -O1 -w -D_GNU_SOURCE -I "$target" "${flags[@]}" "$target/pjdfstest.c" -o "$target/pjdfstest" || die "pjdfstest can't be built."
  chmod -R a+rX "$target"
}

build_xfstests() {
  local target=$1/xfstests flags program
  [[ ! -x $target/fsx ]] || return 0
  need_packages gcc libc6-dev xfslibs-dev
  checkout "${XFSTESTS-}" https://github.com/kdave/xfstests 63a29724a85f1999e49bf0a9bf0d22643b6116e5 "$target" \
    ltp/fsx.c ltp/fsstress.c src/global.h src/statx.h src/fiexchange.h
  # It empties the caches of the whole machine at each opening, which takes root; what is compared stays the same.
  sed -i 's|echo 3 > /proc/sys/vm/drop_caches|true|' "$target/ltp/fsx.c"
  : >"$target/config.h"
  mapfile -t flags < <(present XFS_XFS_H SYS_TYPES_H SYS_STAT_H SYS_STATVFS_H SYS_TIME_H SYS_IOCTL_H SYS_WAIT_H MALLOC_H DIRENT_H \
    STDLIB_H UNISTD_H ERRNO_H STRING_H SYS_FCNTL_H SYS_PARAM_H LIBGEN_H ASSERT_H STRINGS_H LINUX_FALLOC_H SYS_MMAN_H SYS_PRCTL_H \
    LINUX_FIEMAP_H ERR_H COPY_FILE_RANGE RENAMEAT2)
  for program in fsx fsstress; do
    cc -O1 -w -D_GNU_SOURCE -DSTDC_HEADERS -DXFS -DFALLOCATE -I "$target" -I "$target/src" "${flags[@]}" \
      "$target/ltp/$program.c" -o "$target/$program" -lm || die "$program can't be built."
  done
  chmod -R a+rX "$target"
}
