// libgcrypt. Functions with a variable number of arguments, which Swift can't call. No logic.
#pragma once

#include "functions.h"

// As in CSystemdBus.
#define CSERVICE_PRAGMA(text) _Pragma(#text)
#define CSERVICE_RENAME(name) CSERVICE_PRAGMA(redefine_extname name cservice_##name)
CGCRYPT_FUNCTIONS(CSERVICE_RENAME)

#include <gcrypt.h>

// Makes the library ready, with locked memory for secrets, unless another part of the program has done that.
static inline void shim_gcrypt_initialize(void) {
  if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P)) return;
  gcry_check_version(NULL);
  gcry_control(GCRYCTL_SUSPEND_SECMEM_WARN);
  gcry_control(GCRYCTL_INIT_SECMEM, 65536, 0);
  gcry_control(GCRYCTL_RESUME_SECMEM_WARN);
  gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}
