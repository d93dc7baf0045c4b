// A small file system with each option of the kernel's FUSE as an option of its own: Documentation/KERNEL.md has the
// figures.
//
// Its root has `hello` of 13 bytes, `large` of `size` bytes, and `many`, a directory of `entries` files. getxattr(2) of
// `user.requests` on the root returns how many requests came since it was last asked, and forgets them.
//
// Built by `run`, with libfuse 3.14 or newer. Passthrough and io_uring need 3.18.

#define _GNU_SOURCE
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct options {
  int no_flush, direct_io, keep_cache, splice, no_async_read;
  int no_open, no_opendir, cache_dir, readdirplus, passthrough;
  int threads, clone_fd, entries, size, max_read;
  double timeout;
} options = {.readdirplus = 1, .entries = 10000, .size = 131072, .timeout = 86400};

#define FLAG(word, field) {word, offsetof(struct options, field), 1}
#define NUMBER(word, field) {word, offsetof(struct options, field), 0}

static const struct fuse_opt words[] = {
  FLAG("no_flush", no_flush),
  FLAG("direct_io", direct_io),
  FLAG("keep_cache", keep_cache),
  FLAG("splice", splice),
  FLAG("no_async_read", no_async_read),
  FLAG("no_open", no_open),
  FLAG("no_opendir", no_opendir),
  FLAG("cache_dir", cache_dir),
  FLAG("passthrough", passthrough),
  FLAG("clone_fd", clone_fd),
  NUMBER("readdirplus=%d", readdirplus), // 0 never, 1 as the kernel thinks (AUTO), 2 always
  NUMBER("threads=%d", threads),         // 0: libfuse's loop with one thread
  NUMBER("entries=%d", entries),
  NUMBER("size=%d", size),
  NUMBER("max_read=%d", max_read),
  NUMBER("timeout=%lf", timeout),
  FUSE_OPT_END,
};

enum { ROOT = FUSE_ROOT_ID, HELLO, LARGE, MANY, FIRST = 1000 };

enum request { LOOKUP, GETATTR, OPEN, READ, FLUSH, RELEASE, OPENDIR, READDIR, READDIRPLUS, RELEASEDIR, GETXATTR, REQUESTS };
static const char *const request_names[] = {"LOOKUP", "GETATTR", "OPEN", "READ", "FLUSH", "RELEASE",
  "OPENDIR", "READDIR", "READDIRPLUS", "RELEASEDIR", "GETXATTR"};
static long counts[REQUESTS];

static void count(enum request request) { __atomic_add_fetch(&counts[request], 1, __ATOMIC_RELAXED); }

static struct fuse_session *session;
static const char hello[] = "Hello World!\n";
static char *large;
// The same contents as files in memory, for splice and passthrough.
static int hello_file, large_file;

static struct stat status_of(fuse_ino_t node) {
  struct stat status = {.st_ino = node, .st_uid = getuid(), .st_gid = getgid(), .st_nlink = 1};
  if (node == ROOT || node == MANY) {
    status.st_mode = S_IFDIR | 0700;
    status.st_nlink = 2;
  } else {
    status.st_mode = S_IFREG | 0600;
    status.st_size = node == LARGE ? options.size : (off_t)strlen(hello);
  }
  return status;
}

static struct fuse_entry_param entry_of(fuse_ino_t node) {
  struct fuse_entry_param entry = {
    .ino = node, .attr = status_of(node), .attr_timeout = options.timeout, .entry_timeout = options.timeout};
  return entry;
}

static fuse_ino_t child(fuse_ino_t parent, const char *name) {
  int number;
  if (parent == ROOT && !strcmp(name, "hello")) return HELLO;
  if (parent == ROOT && !strcmp(name, "large")) return LARGE;
  if (parent == ROOT && !strcmp(name, "many")) return MANY;
  if (parent == MANY && sscanf(name, "key%d", &number) == 1 && number < options.entries) return FIRST + number;
  return 0;
}

static void on_init(void *data, struct fuse_conn_info *connection) {
  (void)data;
  connection->want &= ~(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS |
    FUSE_CAP_READDIRPLUS_AUTO);
  if (options.splice)
    connection->want |= connection->capable & (FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  if (options.readdirplus) connection->want |= FUSE_CAP_READDIRPLUS;
  if (options.readdirplus == 1) connection->want |= FUSE_CAP_READDIRPLUS_AUTO;
  if (options.no_async_read) connection->want &= ~FUSE_CAP_ASYNC_READ;
  if (options.max_read) connection->max_read = options.max_read;
#ifdef FUSE_CAP_PASSTHROUGH
  if (options.passthrough) {
    fuse_set_feature_flag(connection, FUSE_CAP_PASSTHROUGH);
    connection->max_backing_stack_depth = 1;
  }
#endif
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
  fuse_ino_t node = child(parent, name);
  struct fuse_entry_param entry;
  count(LOOKUP);
  if (!node) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  entry = entry_of(node);
  fuse_reply_entry(request, &entry);
}

static void on_getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  struct stat status = status_of(node);
  (void)info;
  count(GETATTR);
  fuse_reply_attr(request, &status, options.timeout);
}

#ifdef FUSE_CAP_PASSTHROUGH
// linux/fuse.h of Linux 6.9 and newer; Debian 12's headers are older.
struct backing_map {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)

// The number of the backing file; negative: an error number.
static int backing_file(fuse_ino_t node) {
  static int numbers[2];
  int *number = &numbers[node == LARGE];
  struct backing_map map = {.fd = node == LARGE ? large_file : hello_file};
  if (*number) return *number;
  *number = ioctl(fuse_session_fd(session), BACKING_OPEN, &map);
  if (*number > 0) return *number;
  *number = 0;
  return -errno;
}
#endif

static void on_open(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  count(OPEN);
  if (options.no_open) {
    fuse_reply_err(request, ENOSYS);
    return;
  }
  info->direct_io = options.direct_io;
  info->keep_cache = options.keep_cache;
  info->noflush = options.no_flush;
#ifdef FUSE_CAP_PASSTHROUGH
  if (options.passthrough) {
    int number = backing_file(node);
    if (number < 0) {
      fuse_reply_err(request, -number);
      return;
    }
    info->backing_id = number;
  }
#endif
  (void)node;
  fuse_reply_open(request, info);
}

static void on_read(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *info) {
  size_t length = node == LARGE ? (size_t)options.size : strlen(hello);
  size_t rest = (size_t)offset < length ? length - offset : 0;
  size_t part = rest < size ? rest : size;
  (void)info;
  count(READ);
  if (options.splice) {
    struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(part);
    bytes.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    bytes.buf[0].fd = node == LARGE ? large_file : hello_file;
    bytes.buf[0].pos = offset;
    fuse_reply_data(request, &bytes, FUSE_BUF_SPLICE_MOVE | FUSE_BUF_FORCE_SPLICE);
  } else {
    fuse_reply_buf(request, (node == LARGE ? large : hello) + (part ? offset : 0), part);
  }
}

static void on_flush(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node, (void)info;
  count(FLUSH);
  fuse_reply_err(request, 0);
}

static void on_release(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node, (void)info;
  count(RELEASE);
  fuse_reply_err(request, 0);
}

static void on_opendir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node;
  count(OPENDIR);
  if (options.no_opendir) {
    fuse_reply_err(request, ENOSYS);
    return;
  }
  if (options.cache_dir) info->cache_readdir = info->keep_cache = 1;
  fuse_reply_open(request, info);
}

static void list(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, int plus) {
  static const char *const names[] = {"hello", "large", "many"};
  int total = node == MANY ? options.entries : 3;
  char *bytes = malloc(size);
  size_t used = 0;
  for (int index = offset; bytes && index < total; index++) {
    struct fuse_entry_param entry = entry_of(node == MANY ? FIRST + index : HELLO + index);
    char name[32];
    size_t needed;
    snprintf(name, sizeof name, node == MANY ? "key%05d" : "%s", node == MANY ? index : 0);
    if (node == ROOT) snprintf(name, sizeof name, "%s", names[index]);
    needed = plus ? fuse_add_direntry_plus(request, bytes + used, size - used, name, &entry, index + 1)
                  : fuse_add_direntry(request, bytes + used, size - used, name, &entry.attr, index + 1);
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(request, bytes, used);
  free(bytes);
}

static void on_readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *info) {
  (void)info;
  count(READDIR);
  list(request, node, size, offset, 0);
}

static void on_readdirplus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *info) {
  (void)info;
  count(READDIRPLUS);
  list(request, node, size, offset, 1);
}

static void on_releasedir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node, (void)info;
  count(RELEASEDIR);
  fuse_reply_err(request, 0);
}

static void on_getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t size) {
  char text[512] = "";
  int used = 0;
  if (strcmp(name, "user.requests") || node != ROOT) {
    count(GETXATTR);
    fuse_reply_buf(request, "value", 5);
    return;
  }
  for (int index = 0; index < REQUESTS; index++)
    if (counts[index]) used += snprintf(text + used, sizeof text - used, "%s %ld ", request_names[index], counts[index]);
  if (size == 0) {
    fuse_reply_xattr(request, sizeof text);
    return;
  }
  memset(counts, 0, sizeof counts);
  fuse_reply_buf(request, text, used);
}

static const struct fuse_lowlevel_ops operations = {
  .init = on_init,
  .lookup = on_lookup,
  .getattr = on_getattr,
  .open = on_open,
  .read = on_read,
  .flush = on_flush,
  .release = on_release,
  .opendir = on_opendir,
  .readdir = on_readdir,
  .readdirplus = on_readdirplus,
  .releasedir = on_releasedir,
  .getxattr = on_getxattr,
};

static int file_in_memory(const char *bytes, size_t size) {
  int file = memfd_create("fuse-options", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != (ssize_t)size) exit(1);
  return file;
}

int main(int count, char **words_of_command) {
  struct fuse_args arguments = FUSE_ARGS_INIT(count, words_of_command);
  struct fuse_cmdline_opts command;
  int status;
  if (fuse_parse_cmdline(&arguments, &command) || fuse_opt_parse(&arguments, &options, words, NULL)) return 1;
  if (options.max_read) {
    // libfuse wants it here and in `init`.
    char word[32];
    snprintf(word, sizeof word, "-omax_read=%d", options.max_read);
    if (fuse_opt_add_arg(&arguments, word)) return 1;
  }
  large = malloc(options.size);
  if (!large) return 1;
  memset(large, 'x', options.size);
  hello_file = file_in_memory(hello, strlen(hello));
  large_file = file_in_memory(large, options.size);
  session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, command.mountpoint)) return 1;
  fuse_daemonize(command.foreground);
  if (options.threads) {
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(loop, options.clone_fd);
    fuse_loop_cfg_set_max_threads(loop, options.threads);
    status = fuse_session_loop_mt(session, loop);
    fuse_loop_cfg_destroy(loop);
  } else {
    status = fuse_session_loop(session);
  }
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return status ? 1 : 0;
}
