#include "CCurlLoader.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "../CCurl/functions.h"

// A call before ccurl_load.
__attribute__((visibility("hidden"), noreturn)) void ccurl_not_loaded(void) { abort(); }

#define CCURL_SLOT(name) __attribute__((visibility("hidden"))) void *ccurl_slot_##name = ccurl_not_loaded;
CCURL_FUNCTIONS(CCURL_SLOT)

// A jump, and no C function, as in CSecretLoader.
#if defined(__x86_64__)
#define CCURL_JUMP(name) "  jmp *ccurl_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define CCURL_JUMP(name)                                                                                               \
  "  adrp x16, ccurl_slot_" #name "\n"                                                                                \
  "  ldr x16, [x16, :lo12:ccurl_slot_" #name "]\n"                                                                    \
  "  br x16\n"
#else
#error "CCurlLoader has no jump for this processor"
#endif
#define CCURL_FUNCTION(name)                                                                                           \
  __asm__(".text\n"                                                                                                   \
          ".globl ccurl_" #name "\n"                                                                                  \
          ".hidden ccurl_" #name "\n"                                                                                 \
          ".type ccurl_" #name ", %function\n"                                                                        \
          "ccurl_" #name ":\n" CCURL_JUMP(name) ".size ccurl_" #name ", .-ccurl_" #name "\n");
CCURL_FUNCTIONS(CCURL_FUNCTION)

// Nothing is called before all functions are found. The library stays loaded.
#define CCURL_FIND(name)                                                                                               \
  void *found_##name = dlsym(library, #name);                                                                          \
  if (!found_##name) return dlerror();
#define CCURL_SET(name) ccurl_slot_##name = found_##name;

const char *ccurl_load(void) {
  static int is_loaded = 0;
  if (is_loaded) return NULL;
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return dlerror();
  CCURL_FUNCTIONS(CCURL_FIND)
  CCURL_FUNCTIONS(CCURL_SET)
  is_loaded = 1;
  return NULL;
}
