#include "CServiceLoader.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "../CGcrypt/functions.h"
#include "../CSystemdBus/functions.h"

// A call before the library is loaded.
__attribute__((visibility("hidden"), noreturn)) void cservice_not_loaded(void) { abort(); }

#define CSERVICE_SLOT(name) __attribute__((visibility("hidden"))) void *cservice_slot_##name = cservice_not_loaded;
CSYSTEMD_BUS_FUNCTIONS(CSERVICE_SLOT)
CGCRYPT_FUNCTIONS(CSERVICE_SLOT)

// A jump, and no C function, as in CSecretLoader.
#if defined(__x86_64__)
#define CSERVICE_JUMP(name) "  jmp *cservice_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define CSERVICE_JUMP(name)                                                                                            \
  "  adrp x16, cservice_slot_" #name "\n"                                                                             \
  "  ldr x16, [x16, :lo12:cservice_slot_" #name "]\n"                                                                 \
  "  br x16\n"
#else
#error "CServiceLoader has no jump for this processor"
#endif
#define CSERVICE_FUNCTION(name)                                                                                        \
  __asm__(".text\n"                                                                                                   \
          ".globl cservice_" #name "\n"                                                                               \
          ".hidden cservice_" #name "\n"                                                                              \
          ".type cservice_" #name ", %function\n"                                                                     \
          "cservice_" #name ":\n" CSERVICE_JUMP(name) ".size cservice_" #name ", .-cservice_" #name "\n");
CSYSTEMD_BUS_FUNCTIONS(CSERVICE_FUNCTION)
CGCRYPT_FUNCTIONS(CSERVICE_FUNCTION)

// Nothing is called before all functions are found. The libraries stay loaded.
#define CSERVICE_FIND(name)                                                                                            \
  void *found_##name = dlsym(library, #name);                                                                          \
  if (!found_##name) return dlerror();
#define CSERVICE_SET(name) cservice_slot_##name = found_##name;

const char *cservice_load_bus(void) {
  static int is_loaded = 0;
  if (is_loaded) return NULL;
  void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return dlerror();
  CSYSTEMD_BUS_FUNCTIONS(CSERVICE_FIND)
  CSYSTEMD_BUS_FUNCTIONS(CSERVICE_SET)
  is_loaded = 1;
  return NULL;
}

const char *cservice_load_gcrypt(void) {
  static int is_loaded = 0;
  if (is_loaded) return NULL;
  void *library = dlopen("libgcrypt.so.20", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return dlerror();
  CGCRYPT_FUNCTIONS(CSERVICE_FIND)
  CGCRYPT_FUNCTIONS(CSERVICE_SET)
  is_loaded = 1;
  return NULL;
}
