#define _GNU_SOURCE
#include "clinux.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int linux_rename_noreplace(const char *path, const char *target) {
  return renameat2(AT_FDCWD, path, AT_FDCWD, target, RENAME_NOREPLACE);
}

int linux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

void linux_explicit_bzero(void *bytes, size_t count) { explicit_bzero(bytes, count); }

// Deep enough for what cryptography calls; the frame is below that of whoever calls this, where theirs was.
__attribute__((noinline)) void linux_scrub_stack(void) {
  char frame[32 * 1024];
  explicit_bzero(frame, sizeof frame);
}
