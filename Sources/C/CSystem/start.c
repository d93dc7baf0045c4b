#define _GNU_SOURCE
#include "start.h"
#include "clinux.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

// In a child of vfork(2): it has this process's memory, but descriptors, signal actions, limits and mask of its own.
static int execute(const struct linux_program *program) {
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    if (action.sa_handler == SIG_IGN && number != SIGXFSZ) continue;
    action.sa_handler = SIG_DFL;
    action.sa_flags = 0;
    sigaction(number, &action, NULL);
  }
  for (size_t i = 0; i < program->descriptor_count; i++)
    if (dup2(program->descriptors[i].source, program->descriptors[i].number) < 0) return errno;
  for (size_t i = 0; i < program->limit_count; i++) {
    struct rlimit limit = {program->limits[i].current, program->limits[i].highest};
    setrlimit((__rlimit_resource_t)program->limits[i].resource, &limit);
  }
  umask(program->umask);
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int number = 1; number < NSIG; number++)
    if (program->blocked >> (number - 1) & 1) sigaddset(&blocked, number);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  // The last step before: another file has come to that path since it was shown.
  struct stat file;
  if (stat(program->path, &file) != 0) return errno;
  if (file.st_dev != program->device || file.st_ino != program->inode) return ESTALE;
  // The path has a slash, so nothing is searched.
  execvpe(program->path, program->words, program->variables);
  return errno;
}

static void write_number(char *text, int number) {
  char digits[12];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) *text++ = digits[--count];
  *text = 0;
}

// In the leader of the new session. It must keep no descriptor: the end of a pipe is the end of its last writer.
static void become_monitor(pid_t child, int rest) {
  char number[12], *words[] = {"keyhole", "run-monitor", number, NULL}, *none[] = {NULL};
  write_number(number, child);
  int null = open("/dev/null", O_RDWR);
  dup2(rest < 0 ? null : rest, 0);
  for (int stream = 1; stream < 3; stream++) dup2(null, stream);
  linux_close_from(3);
  execve("/proc/self/exe", words, none);
}

int linux_start(const struct linux_program *program, int *was_executed) {
  // Written by the children, which have this memory; vfork(2) returns here after that.
  volatile int error = 0, executed = 1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = vfork();
  if (child == 0 && program->terminal < 0) {
    error = execute(program);
    executed = 0;
    _exit(127);
  }
  if (child == 0) {
    if (setsid() < 0 || ioctl(program->terminal, TIOCSCTTY, 0) != 0) {
      error = errno;
      _exit(125);
    }
    pid_t inner = vfork();
    if (inner == 0) {
      setpgid(0, 0);
      tcsetpgrp(program->terminal, getpid());
      error = execute(program);
      executed = 0;
      _exit(127);
    }
    if (inner < 0) error = errno;
    if (error != 0) _exit(125);
    become_monitor(inner, program->rest);
    error = errno;
    kill(inner, SIGKILL);
    _exit(125);
  }
  if (child < 0) error = errno;
  if (child > 0 && error != 0)
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  *was_executed = executed;
  if (error == 0) return child;
  errno = error;
  return -1;
}

static _Noreturn void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  int number = WTERMSIG(status);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  signal(number, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  kill(getpid(), number);
  _exit(128 + number);
}

// The end of the session's leader empties the terminal's queue, so it is read before.
static void pass_rest(void) {
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  struct termios modes;
  if (terminal < 0) return;
  // A process in the background may not read it.
  if (tcsetpgrp(terminal, getpgrp()) == 0 && tcgetattr(terminal, &modes) == 0) {
    int by_lines = modes.c_lflag & ICANON;
    unsigned char bytes[256], end = modes.c_cc[VEOF];
    ssize_t count;
    // Also a line that has no end yet.
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    modes.c_cc[VMIN] = modes.c_cc[VTIME] = 0;
    tcsetattr(terminal, TCSANOW, &modes);
    while ((count = read(terminal, bytes, sizeof bytes)) > 0) {
      // The queue has a NUL where an end of the input was typed.
      for (ssize_t i = 0; by_lines && i < count; i++)
        if (bytes[i] == 0) bytes[i] = end;
      if (write(STDIN_FILENO, bytes, (size_t)count) != count) break;
    }
    explicit_bzero(bytes, sizeof bytes);
  }
  close(terminal);
}

void linux_monitor(int child) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  for (;;) {
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WUNTRACED | WNOHANG)) > 0) {
      if (ended != child) continue;
      if (!WIFSTOPPED(status)) {
        struct stat input;
        if (fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode)) pass_rest();
        end_as(status);
      }
      // Until the process of `keyhole run` continues this one.
      raise(SIGSTOP);
    }
    if (ended < 0 && errno == ECHILD) _exit(125);
    int number = sigwaitinfo(&all, NULL);
    if (number <= 0 || number == SIGCHLD) continue;
    if (number == SIGRTMAX) {
      kill(-child, SIGKILL);
      continue;
    }
    // A terminal that is closed concerns all in the foreground.
    kill(number == SIGCONT || number == SIGHUP ? -child : child, number);
  }
}

int linux_child_state(int child, int *value) {
  int status;
  pid_t found;
  while ((found = waitpid(child, &status, WUNTRACED | WNOHANG)) < 0 && errno == EINTR) {}
  if (found <= 0) return found == 0 ? 0 : -1;
  if (WIFEXITED(status)) return *value = WEXITSTATUS(status), 1;
  if (WIFSTOPPED(status)) return *value = WSTOPSIG(status), 3;
  return *value = WTERMSIG(status), 2;
}

int linux_memory_file(const char *name) {
  int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | 8U /* MFD_NOEXEC_SEAL, of Linux 6.3 */);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int linux_seal(int descriptor) {
  return fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

int linux_pseudo_terminal(int ends[2]) {
  char path[64];
  ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ends[0] < 0) return -1;
  int error = 0;
  ends[1] = -1;
  if (grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0) error = errno;
  if (error == 0) error = ptsname_r(ends[0], path, sizeof path);
  if (error == 0 && (ends[1] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) error = errno;
  if (error == 0) return 0;
  close(ends[0]);
  errno = error;
  return -1;
}

int linux_window_size(int terminal, unsigned short size[4]) {
  struct winsize window;
  if (ioctl(terminal, TIOCGWINSZ, &window) != 0) return -1;
  memcpy(size, &window, sizeof window);
  return 0;
}

int linux_set_window_size(int terminal, const unsigned short size[4]) {
  struct winsize window;
  memcpy(&window, size, sizeof window);
  return ioctl(terminal, TIOCSWINSZ, &window);
}

size_t linux_type(int terminal, const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ioctl(terminal, TIOCSTI, bytes + i) != 0) return i;
  return count;
}

void linux_signal_others(int number) {
  struct sigaction before, action;
  if (sigaction(number, NULL, &before) != 0) return;
  action = before;
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  sigaction(number, &action, NULL);
  kill(0, number);
  sigaction(number, &before, NULL);
}

static volatile int noting = -1;

static void note_signal(int number, siginfo_t *information, void *context) {
  (void)context;
  int before = errno;
  unsigned char bytes[2] = {(unsigned char)number, information->si_code == SI_KERNEL};
  // A full pipe has more than enough of them.
  if (write(noting, bytes, sizeof bytes) < 0) {}
  errno = before;
}

// A handler, and not signalfd(2): that gets no signal that a thread takes which does not block it.
static void note(int number) {
  struct sigaction action;
  if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN && number != SIGCHLD) return;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = note_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

void linux_note_signals(const int *numbers, size_t count, int pipe) {
  noting = pipe;
  for (size_t i = 0; i < count; i++) note(numbers[i]);
}

void linux_stop_group(void) {
  struct sigaction before, action;
  sigset_t stop, mask;
  if (sigaction(SIGTSTP, NULL, &before) != 0) return;
  action = before;
  // The others first: this thread's signal stops the process before the call returns, the group's on any thread.
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  sigaction(SIGTSTP, &action, NULL);
  kill(0, SIGTSTP);
  if (before.sa_handler != SIG_IGN) {
    action.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &action, NULL);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, &mask);
    pthread_kill(pthread_self(), SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
  }
  sigaction(SIGTSTP, &before, NULL);
}
