#define _GNU_SOURCE
#include "clinux.h"
#include <fcntl.h>
#include <string.h>

int linux_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

void linux_explicit_bzero(void *bytes, size_t count) { explicit_bzero(bytes, count); }
