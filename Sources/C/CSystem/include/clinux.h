#pragma once
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "start.h"

// Calls that Glibc's Swift module does not show: variadic ones, and ones newer than the C library.

/// memfd_secret(2): memory that neither cores, swap nor other processes can read. -1 and errno on failure.
static inline int linux_memfd_secret(void) {
  return (int)syscall(447 /* SYS_memfd_secret, which older headers do not name */, 0UL);
}

/// mremap(2) with MREMAP_MAYMOVE: the mapping with another length, maybe elsewhere. NULL and errno on failure.
void *linux_mremap(void *start, size_t length, size_t new_length);

/// pidfd_open(2): a descriptor that poll(2) finds readable when the process ends. -1 and errno on failure.
static inline int linux_pidfd_open(int pid) { return (int)syscall(434 /* SYS_pidfd_open */, pid, 0UL); }

/// Whether a number is that of a process, and not that of a further thread: tgkill(2) with signal 0, which sends nothing. 0 also
/// where the signal could not be sent.
static inline int linux_is_process(int number) { return syscall(SYS_tgkill, number, number, 0) == 0; }

/// renameat2(2) with RENAME_NOREPLACE: EEXIST where the new name is taken. -1 and errno on failure.
int linux_rename_noreplace(const char *path, const char *target);

/// renameat2(2) with RENAME_EXCHANGE: each of the two names gets the other's file. -1 and errno on failure.
int linux_rename_exchange(const char *path, const char *other);

/// The type of the file system of a path: `f_type` of statfs(2). 0, or -1 and errno.
int linux_file_system(const char *path, unsigned long long *type);

/// fallocate(2) with FALLOC_FL_KEEP_SIZE: room for a part of a file, whose length stays. 0, or -1 and errno.
int linux_allocate(int file, long long offset, long long length);

/// getxattr(2): the length of the value. -1 and errno on failure.
long linux_attribute(const char *path, const char *name, void *value, unsigned long size);

/// removexattr(2). -1 and errno on failure.
int linux_remove_attribute(const char *path, const char *name);

/// pipe2(2) with O_CLOEXEC. -1 and errno on failure.
int linux_pipe(int ends[2]);

/// The inode of what has a path, a symbolic link itself, and when it was made: seconds and nanoseconds, both 0 where the
/// file system does not tell. 0, or -1 and errno as statx(2).
int linux_inode(const char *path, unsigned long long *inode, long long birth[2]);

/// signalfd(2) with SFD_CLOEXEC and SFD_NONBLOCK: readable when one of the signals is pending. -1 and errno on failure.
static inline int linux_signal_descriptor(const sigset_t *signals) {
  return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Takes the next pending signal from such a descriptor: its number, or 0.
static inline int linux_next_signal(int descriptor) {
  struct signalfd_siginfo info;
  return read(descriptor, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

/// stat(2) as a user sees it: 0, or errno. Root asks in a process of its own; others as they are.
int linux_stat_as(unsigned user, unsigned group, const char *path);

/// stat(2) in a process of its own, which has none of this one's descriptors but the first three: 0, errno, or -errno where
/// no process could be made. A process that waits for its own file system can't be killed, as the descriptor that would end
/// the wait is its own.
int linux_stat_in_child(const char *path);

/// Sends a datagram to the socket that sd_notify(3) names; `@` begins an abstract one. It waits for `seconds` at most until
/// the receiver has room, or, with 0, without end. 0, or errno.
int linux_notify(const char *socket_path, const char *text, int seconds);

/// prctl(2) PR_SET_NAME: what ps(1) shows of a process that was started through /proc/self/exe.
static inline int linux_set_name(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

/// prctl(2) PR_SET_DUMPABLE.
static inline int linux_set_dumpable(int dumpable) { return prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0); }

/// prctl(2) PR_SET_CHILD_SUBREAPER: a process whose parent ends gets this process as its new parent where it descends
/// from it, and not init(1). -1 and errno on failure.
static inline int linux_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

/// A listening socket of the Unix domain at `path` (0600, close-on-exec, not blocking), in place of what has the name.
/// Its connections report the sender of each byte (SO_PASSCRED). -1 and errno on failure.
int linux_listen(const char *path);

/// A connection to such a socket; connecting and calls on it fail with EAGAIN after `seconds`. -1 and errno on failure.
int linux_connect(const char *path, int seconds);

/// The abstract address of the other end of a socket, without the NUL before it. Returns its length; -1: it has none.
long linux_abstract_peer(int socket, void *address, unsigned long size);

/// The next connection of a listening socket (close-on-exec, not blocking). -1 and errno on failure.
int linux_accept(int socket);

/// The user at the other end of a connection; (unsigned)-1 where it can't be determined.
unsigned linux_peer(int socket);

/// The process at the other end of a connection, as it was when it connected; 0 where it can't be determined.
int linux_peer_process(int socket);

/// A pidfd of that process, close-on-exec: SO_PEERPIDFD, before Linux 6.5 pidfd_open(2) of its number, which may be
/// another's by then. -1 and errno on failure.
int linux_peer_descriptor(int socket);

/// The process and the user that sent some bytes, as the kernel reports them (SCM_CREDENTIALS); 0 and (unsigned)-1 where
/// it does not.
struct linux_sender {
  int process;
  unsigned user;
};

/// recvmsg(2) without waiting, with the sender of the bytes: those of two senders never come together. -1 and errno on
/// failure.
ssize_t linux_receive_from(int socket, void *bytes, size_t count, struct linux_sender *sender);

/// recv(2) without waiting, but for a descriptor that comes with the bytes (SCM_RIGHTS, close-on-exec): -1 where none does. Of more than
/// one the others are closed.
ssize_t linux_receive(int socket, void *bytes, size_t count, int *descriptor);

/// socketpair(2), of streams, with O_CLOEXEC. -1 and errno on failure.
int linux_socket_pair(int ends[2]);

/// Opens a folder with O_PATH if it is on the device major:minor, which is asked of the kernel and not of the
/// file system. -1 and errno on failure; EXDEV: on another one.
int linux_open_folder(const char *path, unsigned major, unsigned minor);

/// Opens a path with O_PATH as the user and group would (setfsuid(2)), and follows no symbolic link: every
/// component is opened by itself. It does not trigger an automount. -1 and errno on failure; ELOOP: a part of the path is
/// a symbolic link.
int linux_open_path_as(unsigned user, unsigned group, const char *path);

/// Turns the echo of a terminal off, and drops input that was not read. SIGHUP, SIGINT, SIGQUIT and SIGTERM turn it on
/// before they end the process, unless they are ignored. So does SIGTSTP before it stops the process, and SIGCONT turns the
/// echo off again, and shows the prompt again. Only one terminal at a time. -1 and errno on failure.
int linux_hide_typing(int terminal);

/// The prompt that SIGCONT writes to a file again while the echo is off, at most 511 bytes; 0 bytes: none. linux_show_typing() forgets
/// it.
void linux_keep_prompt(int file, const char *text, size_t count);

/// Gives the terminal its modes from before, and signals their effect.
void linux_show_typing(void);

/// clearenv(3).
int linux_clear_environment(void);

/// close_range(2): closes every descriptor from `first` on.
static inline int linux_close_from(unsigned first) { return (int)syscall(436 /* SYS_close_range */, first, ~0U, 0); }

/// Takes the code and constants of the program and its libraries out of this process's resident memory (madvise(2) MADV_DONTNEED): what is
/// needed again comes back from the page cache. Most of it is needed once, for starting.
void linux_forget_code(void);

/// Has the C library give freed memory at the end of a heap back to the system once it is more than 128 KiB: mallopt(3). A
/// process that handled large values would keep several times their size.
void linux_return_freed_memory(void);

/// Gives all whole pages of memory that was freed back to the system: malloc_trim(3). It takes some milliseconds.
void linux_return_unused_memory(void);

/// A message or question of a PAM module (`style` as in pam_conv(3)): the answer goes into `buffer`. Not 0: the
/// conversation ends here.
typedef int (*linux_pam_answer)(void *context, int style, const char *message, char *buffer, size_t size);

/// pam_authenticate(3) and pam_acct_mgmt(3) of a service. 0, a number of PAM's, or -1 where there is no libpam.
int linux_pam_authenticate(const char *service, const char *user, linux_pam_answer answer, void *context);

/// Zeros what calls that have returned left on this thread's stack.
void linux_scrub_stack(void);

/// The upper half of that: what opening one secret uses leaves nothing below, SQLite's calls included.
void linux_scrub_upper_stack(void);

/// explicit_bzero(3): a memset that the compiler can't remove.
void linux_explicit_bzero(void *bytes, size_t count);

/// Zeros what this thread has freed lately of pieces of about this size, as far as the C library would give
/// them out again next.
void linux_scrub_heap(size_t size);
