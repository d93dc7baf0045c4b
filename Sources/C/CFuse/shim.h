// Code that Swift can't express: bit fields, and a zeroing that the optimiser keeps. No logic. `_FILE_OFFSET_BITS` stays
// undefined: on x86-64 it is not needed, and it makes `flock` clash with the Glibc module.
#pragma once

#define FUSE_USE_VERSION 314

#include <fuse_log.h>
#include <fuse_lowlevel.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

// The answers to open, opendir and create, as bits of `OpenOptions`.
#define SHIM_OPEN_DIRECT_IO (1u << 0)
#define SHIM_OPEN_KEEP_CACHE (1u << 1)
#define SHIM_OPEN_NO_FLUSH (1u << 2)
#define SHIM_OPEN_CACHE_READDIR (1u << 3)
#define SHIM_OPEN_NON_SEEKABLE (1u << 4)

static inline void shim_set_open_options(struct fuse_file_info *info, uint32_t options) {
  info->direct_io = (options & SHIM_OPEN_DIRECT_IO) != 0;
  info->keep_cache = (options & SHIM_OPEN_KEEP_CACHE) != 0;
  info->noflush = (options & SHIM_OPEN_NO_FLUSH) != 0;
  info->cache_readdir = (options & SHIM_OPEN_CACHE_READDIR) != 0;
  info->nonseekable = (options & SHIM_OPEN_NON_SEEKABLE) != 0;
}

static inline int shim_is_page_cache_write(const struct fuse_file_info *info) { return info->writepage; }

static inline int shim_is_flushing_release(const struct fuse_file_info *info) { return info->flush; }

static inline void shim_scrub(const void *bytes, size_t count) { explicit_bzero((void *)bytes, count); }

// FUSE_NOTIFY_PRUNE of linux/fuse.h 7.45 (Linux 6.18), which libfuse has no function for: a writev(2) to the device. The nodes
// are at most 512. -1 with EINVAL: the kernel does not know it.
static inline ssize_t shim_notify_prune(int device, const uint64_t *nodes, uint32_t count) {
  struct {
    uint32_t length;
    int32_t code;
    uint64_t unique;
    uint32_t count;
    uint32_t padding;
    uint64_t spare;
  } head = {.length = sizeof head + count * sizeof *nodes, .code = 9, .count = count};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)nodes, count * sizeof *nodes}};
  return writev(device, parts, 2);
}
