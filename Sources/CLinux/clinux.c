#define _DEFAULT_SOURCE
#include "clinux.h"
#include <string.h>

void linux_explicit_bzero(void *bytes, size_t count) { explicit_bzero(bytes, count); }
