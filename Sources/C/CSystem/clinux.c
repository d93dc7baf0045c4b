#define _GNU_SOURCE
#include "clinux.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>

int linux_rename_noreplace(const char *path, const char *target) {
  return renameat2(AT_FDCWD, path, AT_FDCWD, target, RENAME_NOREPLACE);
}

int linux_rename_exchange(const char *path, const char *other) {
  return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
}

int linux_file_system(const char *path, unsigned long long *type) {
  struct statfs status;
  if (statfs(path, &status) != 0) return -1;
  *type = (unsigned long long)status.f_type;
  return 0;
}

int linux_allocate(int file, long long offset, long long length) {
  return fallocate(file, FALLOC_FL_KEEP_SIZE, offset, length);
}

long linux_attribute(const char *path, const char *name, void *value, unsigned long size) {
  return getxattr(path, name, value, size);
}

int linux_remove_attribute(const char *path, const char *name) { return removexattr(path, name); }

void *linux_mremap(void *start, size_t length, size_t new_length) {
  void *moved = mremap(start, length, new_length, MREMAP_MAYMOVE);
  return moved == MAP_FAILED ? NULL : moved;
}

int linux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int linux_notify(const char *socket_path, const char *text, int seconds) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(socket_path);
  if (length == 0 || length >= sizeof address.sun_path) return EINVAL;
  memcpy(address.sun_path, socket_path, length);
  if (socket_path[0] == '@') address.sun_path[0] = 0;
  int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  struct timeval time = {.tv_sec = seconds};
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  ssize_t sent = sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
  int error = sent < 0 ? errno : 0;
  close(descriptor);
  return error;
}

// Between fork and _exit only system calls: the process may have threads.
int linux_stat_as(unsigned user, unsigned group, const char *path) {
  struct stat status;
  if (geteuid() != 0 || user == 0) return stat(path, &status) == 0 ? 0 : errno;
  pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    if (syscall(SYS_setresgid, group, group, group) != 0 || syscall(SYS_setresuid, user, user, user) != 0)
      _exit(EPERM);
    _exit(stat(path, &status) == 0 ? 0 : errno);
  }
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : EIO;
}

// Kernels before 5.9 have no close_range(2).
static void close_all_but_standard(void) {
  if (linux_close_from(3) == 0) return;
  struct rlimit limit;
  int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int descriptor = 3; descriptor < end; descriptor++) close(descriptor);
}

// vfork(2) copies no memory: neither are secrets in two places, nor is room for a second process asked for. Its child has
// the memory of this process, so that no handler of a signal may run in it, and its result needs no exit status, which is
// lost where SIGCHLD is ignored.
int linux_stat_in_child(const char *path) {
  volatile int result = EIO;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = vfork();
  if (child == 0) {
    struct stat status;
    close_all_but_standard();
    result = stat(path, &status) == 0 ? 0 : errno;
    _exit(0);
  }
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (child < 0) return -error;
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  return result;
}

int linux_socket_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }

// Component by component: openat2(2) is refused by a unit's RestrictSUIDSGID= and by kernels before 5.6.
static int open_without_links(const char *path) {
  int folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (folder >= 0 && *(path += strspn(path, "/"))) {
    char name[NAME_MAX + 1];
    size_t length = strcspn(path, "/");
    struct stat status;
    int next = -1, error = ENAMETOOLONG;
    if (length <= NAME_MAX) {
      memcpy(name, path, length);
      name[length] = 0;
      next = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
      error = errno;
    }
    if (next >= 0 && fstat(next, &status) == 0 && S_ISLNK(status.st_mode)) {
      close(next);
      next = -1;
      error = ELOOP;
    }
    close(folder);
    errno = error;
    folder = next;
    path += length;
  }
  return folder;
}

int linux_open_path_as(unsigned user, unsigned group, const char *path) {
  // Both concern this thread alone; the calls return what was before, and report no failure, so each is looked at.
  int old_group = setfsgid(group);
  int old_user = setfsuid(user);
  int descriptor = -1, error = EPERM;
  if ((unsigned)setfsgid((gid_t)-1) == group && (unsigned)setfsuid((uid_t)-1) == user) {
    descriptor = open_without_links(path);
    error = errno;
  }
  setfsuid((uid_t)old_user);
  setfsgid((gid_t)old_group);
  errno = error;
  return descriptor;
}

int linux_clear_environment(void) { return clearenv(); }

int linux_open_folder(const char *path, unsigned major, unsigned minor) {
  struct statx status;
  int folder = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  if (statx(folder, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &status) == 0 &&
      status.stx_dev_major == major && status.stx_dev_minor == minor)
    return folder;
  close(folder);
  errno = EXDEV;
  return -1;
}

void linux_explicit_bzero(void *bytes, size_t count) { explicit_bzero(bytes, count); }

// Deep enough for what cryptography calls; the frame is below that of the caller, where theirs was.
__attribute__((noinline)) void linux_scrub_stack(void) {
  char frame[32 * 1024];
  explicit_bzero(frame, sizeof frame);
}

// Opening a secret took 9 KiB where that was measured, in a release build.
__attribute__((noinline)) void linux_scrub_upper_stack(void) {
  char frame[16 * 1024];
  explicit_bzero(frame, sizeof frame);
}

// More than the C library keeps in one list of freed pieces; the neighbours, because sizes carry a header.
void linux_scrub_heap(size_t size) {
  void *pieces[64];
  size_t count = 0;
  for (size_t step = 0; step < 4; step++) {
    for (size_t index = 0; index < 16; index++) {
      pieces[count] = malloc(size + step * 16);
      if (pieces[count]) explicit_bzero(pieces[count++], size + step * 16);
    }
  }
  while (count) free(pieces[--count]);
}

static int fill(struct sockaddr_un *address, const char *path) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address->sun_path, path);
  return 0;
}

static int failed(int socket) {
  int error = errno;
  close(socket);
  errno = error;
  return -1;
}

static int limit(int socket, int seconds) {
  struct timeval time = {.tv_sec = seconds};
  if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) ||
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time))
    return failed(socket);
  return socket;
}

int linux_listen(const char *path) {
  struct sockaddr_un address;
  if (fill(&address, path)) return -1;
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  unlink(path);
  mode_t mask = umask(0177);
  int error = bind(listener, (struct sockaddr *)&address, sizeof address);
  umask(mask);
  // Connections inherit it, so that no byte comes without its sender.
  int yes = 1;
  if (error || setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) || listen(listener, 128))
    return failed(listener);
  return listener;
}

int linux_connect(const char *path, int seconds) {
  struct sockaddr_un address;
  if (fill(&address, path)) return -1;
  int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0 || limit(connection, seconds) < 0) return -1;
  if (connect(connection, (struct sockaddr *)&address, sizeof address)) return failed(connection);
  return connection;
}

int linux_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

long linux_abstract_peer(int socket, void *name, unsigned long size) {
  struct sockaddr_un address;
  socklen_t length = sizeof address;
  size_t start = offsetof(struct sockaddr_un, sun_path) + 1;
  if (getpeername(socket, (struct sockaddr *)&address, &length)) return -1;
  if (address.sun_family != AF_UNIX || length <= start || length > sizeof address || address.sun_path[0]) return -1;
  if (length - start > size) return -1;
  memcpy(name, address.sun_path + 1, length - start);
  return (long)(length - start);
}

unsigned linux_peer(int socket) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return (unsigned)-1;
  return peer.uid;
}

int linux_peer_process(int socket) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : peer.pid;
}

int linux_peer_descriptor(int socket) {
  int descriptor = -1;
  socklen_t size = sizeof descriptor;
  int failed = getsockopt(socket, SOL_SOCKET, 77 /* SO_PEERPIDFD, which older headers do not name */, &descriptor, &size);
  if (!failed) return descriptor;
  if (errno != ENOPROTOOPT) return -1;
  int process = linux_peer_process(socket);
  if (process > 0) return linux_pidfd_open(process);
  errno = ESRCH;
  return -1;
}

ssize_t linux_receive_from(int socket, void *bytes, size_t count, struct linux_sender *sender) {
  // Room for the sender alone: the kernel closes descriptors that come along.
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
  struct iovec part = {bytes, count};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  *sender = (struct linux_sender){0, (unsigned)-1};
  ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0) return length;
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
    struct ucred credentials;
    memcpy(&credentials, CMSG_DATA(head), sizeof credentials);
    *sender = (struct linux_sender){credentials.pid, credentials.uid};
  }
  return length;
}

ssize_t linux_receive(int socket, void *bytes, size_t count, int *descriptor) {
  enum { most = 16 };
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(most * sizeof(int))];
  struct iovec part = {bytes, count};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  *descriptor = -1;
  ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0) return length;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    size_t number = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; index < number; index++) {
      int received;
      memcpy(&received, CMSG_DATA(part) + index * sizeof(int), sizeof(int));
      if (*descriptor < 0) *descriptor = received;
      else close(received);
    }
  }
  return length;
}

// The part of <security/pam_appl.h> that is used; it has not changed since the first versions. The library is
// opened when it is needed, so that only the process that asks a person has it.
struct pam_message {
  int style;
  const char *text;
};
struct pam_response {
  char *text;
  int code;
};
struct pam_conv {
  int (*converse)(int, const struct pam_message **, struct pam_response **, void *);
  void *context;
};

struct conversation {
  linux_pam_answer answer;
  void *context;
};

static int converse(int count, const struct pam_message **messages, struct pam_response **responses, void *context) {
  struct conversation *conversation = context;
  struct pam_response *answers = calloc((size_t)count, sizeof *answers);
  if (!answers) return 5 /* PAM_BUF_ERR */;
  for (int index = 0; index < count; index++) {
    char text[512] = {0};
    int status = conversation->answer(conversation->context, messages[index]->style, messages[index]->text, text, sizeof text);
    // PAM frees it, and libpam's modules overwrite it before.
    if (!status) answers[index].text = strdup(text);
    explicit_bzero(text, sizeof text);
    if (status) {
      for (int done = 0; done < index; done++) {
        if (answers[done].text) explicit_bzero(answers[done].text, strlen(answers[done].text));
        free(answers[done].text);
      }
      free(answers);
      return 19 /* PAM_CONV_ERR */;
    }
  }
  *responses = answers;
  return 0;
}

int linux_pam_authenticate(const char *service, const char *user, linux_pam_answer answer, void *context) {
  if (!dlopen("libpam.so.0", RTLD_NOW | RTLD_GLOBAL)) return -1;
  // By their global names, so that a library that stands in front of libpam for a test is found.
  int (*start)(const char *, const char *, const struct pam_conv *, void **) = dlsym(RTLD_DEFAULT, "pam_start");
  int (*authenticate)(void *, int) = dlsym(RTLD_DEFAULT, "pam_authenticate");
  int (*account)(void *, int) = dlsym(RTLD_DEFAULT, "pam_acct_mgmt");
  int (*end)(void *, int) = dlsym(RTLD_DEFAULT, "pam_end");
  if (!start || !authenticate || !account || !end) return -1;
  struct conversation conversation = {answer, context};
  struct pam_conv conv = {converse, &conversation};
  void *handle = NULL;
  int status = start(service, user, &conv, &handle);
  if (status || !handle) return status ? status : -1;
  status = authenticate(handle, 0);
  if (!status) status = account(handle, 0);
  end(handle, status);
  return status;
}

static int forget_segments(struct dl_phdr_info *program, size_t size, void *nothing) {
    (void)size;
    (void)nothing;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &program->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
        uintptr_t start = (program->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = program->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void linux_forget_code(void) { dl_iterate_phdr(forget_segments, NULL); }

void linux_return_freed_memory(void) {
    // The values that the C library begins with. By default both grow with the largest piece that is freed, up to 32 and 64 MiB.
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

void linux_return_unused_memory(void) { malloc_trim(0); }

int linux_inode(const char *path, unsigned long long *inode, long long birth[2]) {
  struct statx status;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME, &status) != 0) return -1;
  *inode = status.stx_ino;
  int is_known = (status.stx_mask & STATX_BTIME) != 0;
  birth[0] = is_known ? (long long)status.stx_btime.tv_sec : 0;
  birth[1] = is_known ? (long long)status.stx_btime.tv_nsec : 0;
  return 0;
}

// The terminal whose echo is off, with its modes and the effect of signals before.
static const int hiding_ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int hiding_pauses[] = {SIGTSTP, SIGCONT};
enum { hiding_count = sizeof hiding_ends / sizeof *hiding_ends };
static struct {
  // 0: nothing is hidden any more. Another thread may run a handler while it ends.
  volatile sig_atomic_t is_on;
  int terminal;
  struct termios modes;
  struct sigaction actions[hiding_count];
  struct sigaction pauses[2];
  int prompt_file;
  volatile sig_atomic_t prompt_count;
  char prompt[512];
} hiding;

// Whether this process may set the modes: in the background they are another program's, and setting them would stop this one.
static int may_set_modes(void) {
  pid_t foreground = tcgetpgrp(hiding.terminal);
  // Negative: it is not this process's controlling terminal, which no job control protects.
  return foreground < 0 || foreground == getpgrp();
}

static int hide_typing(void) {
  struct termios silent = hiding.modes;
  silent.c_lflag &= ~(tcflag_t)ECHO;
  return tcsetattr(hiding.terminal, TCSAFLUSH, &silent);
}

// The handlers call only what signal-safety(7) lets them call: tcgetpgrp(3), tcsetattr(3), sigaction(2), raise(3), write(2).

// The signal comes again when the handler returns.
static void show_typing_and_end(int number) {
  if (may_set_modes()) tcsetattr(hiding.terminal, TCSANOW, &hiding.modes);
  signal(number, SIG_DFL);
  raise(number);
}

// A shell gives a job that it continues its own modes. Where nothing shows, what was typed so far is kept.
static void hide_typing_again(int number) {
  int error = errno;
  struct termios present;
  if (hiding.is_on && may_set_modes()) {
    if (tcgetattr(hiding.terminal, &present) == 0 && present.c_lflag & ECHO) hide_typing();
    // The shell has written the command's line below the prompt. What was not stopped has it still.
    ssize_t written = number == SIGCONT ? write(hiding.prompt_file, hiding.prompt, (size_t)hiding.prompt_count) : 0;
    (void)written;
  }
  errno = error;
}

static void show_typing_and_stop(int number);

static void handle(int number, void (*handler)(int), int flags, struct sigaction *before) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(number, NULL, before);
  if (before->sa_handler == SIG_DFL) sigaction(number, &action, NULL);
}

static void show_typing_and_stop(int number) {
  int error = errno;
  if (may_set_modes()) tcsetattr(hiding.terminal, TCSANOW, &hiding.modes);
  signal(number, SIG_DFL);
  raise(number); // Stops the process here, as SA_NODEFER does not block the signal; not in an orphaned process group.
  struct sigaction before;
  if (hiding.is_on) handle(number, show_typing_and_stop, SA_NODEFER | SA_RESTART, &before);
  hide_typing_again(0);
  errno = error;
}

int linux_hide_typing(int terminal) {
  if (tcgetattr(terminal, &hiding.modes) != 0) return -1;
  hiding.terminal = terminal;
  hiding.is_on = 1;
  for (int i = 0; i < hiding_count; i++) handle(hiding_ends[i], show_typing_and_end, 0, &hiding.actions[i]);
  handle(hiding_pauses[0], show_typing_and_stop, SA_NODEFER | SA_RESTART, &hiding.pauses[0]);
  handle(hiding_pauses[1], hide_typing_again, SA_RESTART, &hiding.pauses[1]);
  if (hide_typing() == 0) return 0;
  int error = errno;
  linux_show_typing();
  errno = error;
  return -1;
}

void linux_keep_prompt(int file, const char *text, size_t count) {
  hiding.prompt_count = 0;
  if (count >= sizeof hiding.prompt) return;
  memcpy(hiding.prompt, text, count);
  hiding.prompt_file = file;
  hiding.prompt_count = (sig_atomic_t)count;
}

void linux_show_typing(void) {
  // First, or a SIGCONT would hide what is typed for good.
  hiding.is_on = 0;
  hiding.prompt_count = 0;
  for (int i = 0; i < 2; i++) sigaction(hiding_pauses[i], &hiding.pauses[i], NULL);
  tcsetattr(hiding.terminal, TCSAFLUSH, &hiding.modes);
  for (int i = 0; i < hiding_count; i++) sigaction(hiding_ends[i], &hiding.actions[i], NULL);
}
