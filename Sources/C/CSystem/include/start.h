#pragma once
#include <stddef.h>
#include <sys/types.h>

// Programs that are started in the user's place, on the user's terminal or on one between.

/// A limit of setrlimit(2) that the program gets.
struct linux_limit {
  int resource;
  unsigned long long current, highest;
};

/// A descriptor that the program gets: `source` of this process becomes its `number`. No source may be the number of another
/// one.
struct linux_given {
  int source, number;
};

/// A program to start. All pointers are used until the call returns.
struct linux_program {
  /// Has a slash; a script without an interpreter is one of sh(1), as for execvp(3).
  const char *path;
  /// The file that the path has to lead to, else the error is ESTALE.
  unsigned long long device, inode;
  /// Ends with NULL.
  char *const *words;
  /// Ends with NULL.
  char *const *variables;
  const struct linux_given *descriptors;
  size_t descriptor_count;
  const struct linux_limit *limits;
  size_t limit_count;
  unsigned umask;
  /// The signals that the program blocks: bit N - 1 for the signal N.
  unsigned long long blocked;
  /// A pseudo-terminal that becomes the controlling one of a new session for the program; -1: it is in ours, in our group.
  int terminal;
  /// With a terminal: what was typed on it and not read when the program ends is written here; -1: it is lost.
  int rest;
};

/// Starts a program: execve(2) in a child of vfork(2), so that its variables are copied by the kernel alone. Signals that this
/// process ignores stay ignored, but for SIGXFSZ; those that it handles are at their defaults.
///
/// With a terminal, the child that is returned is the leader of the session: `keyhole run-monitor`, whose child is the
/// program, in a group of its own in the foreground. Without it the kernel would take the program's group for orphaned, and
/// Ctrl-Z would not stop it.
///
/// Returns the child, or -1 and errno; `was_executed`: false where the program itself could not be executed.
int linux_start(const struct linux_program *program, int *was_executed);

/// Stands for a program that is a child of this process: passes signals on to it, stops when it stops, and ends as it does. SIGRTMAX
/// kills it. Before its end it writes to standard input, which is a pipe, what was typed and not read. Does not return.
_Noreturn void linux_monitor(int child);

/// waitpid(2) without waiting, also for a stop: 0 where nothing has happened, 1 and `value` the exit code, 2 and the signal that
/// ended it, 3 and the signal that stopped it; -1: it is no child.
int linux_child_state(int child, int *value);

/// memfd_create(2) with MFD_CLOEXEC and MFD_ALLOW_SEALING, and with MFD_NOEXEC_SEAL where the kernel has it. -1 and errno on
/// failure.
int linux_memory_file(const char *name);

/// fcntl(2) F_ADD_SEALS: neither content nor length can be changed, and the seals can't be taken off. -1 and errno on failure.
int linux_seal(int descriptor);

/// Opens a pseudo-terminal (pty(7)), close-on-exec, the controlling one of no session: the side of the emulator and that of
/// the program. -1 and errno on failure.
int linux_pseudo_terminal(int ends[2]);

/// ioctl_tty(2) TIOCGWINSZ and TIOCSWINSZ: rows and columns, and the size in pixels. 0, or -1 and errno.
int linux_window_size(int terminal, unsigned short size[4]);
int linux_set_window_size(int terminal, const unsigned short size[4]);

/// ioctl_tty(2) TIOCSTI for each byte: as if it was typed. Returns how many the kernel has taken: none where
/// /proc/sys/dev/tty/legacy_tiocsti is 0.
size_t linux_type(int terminal, const unsigned char *bytes, size_t count);

/// kill(2) of all of this process's group but this process, as a terminal does for Ctrl-C.
void linux_signal_others(int number);

/// Has this process note signals in a pipe, whichever thread gets them: its number, and 1 where the kernel sent it, as a terminal
/// does, else 0. A signal that is ignored stays ignored, but for SIGCHLD: without it a child can't be waited for. Once in a
/// process.
void linux_note_signals(const int *numbers, size_t count, int pipe);

/// Stops this process and its group by SIGTSTP, as Ctrl-Z does, also where the signal is noted. Returns after SIGCONT, or at
/// once where no shell could continue the group. To be called on the main thread.
void linux_stop_group(void);
