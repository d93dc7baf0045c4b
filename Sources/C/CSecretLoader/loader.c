#include "CSecretLoader.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "../CSecret/functions.h"

// A call before csecret_load.
__attribute__((visibility("hidden"), noreturn)) void csecret_not_loaded(void) { abort(); }

#define CSECRET_SLOT(name) __attribute__((visibility("hidden"))) void *csecret_slot_##name = csecret_not_loaded;
CSECRET_FUNCTIONS(CSECRET_SLOT)

// A jump, and no C function: so it takes the arguments of any signature, and none has to be declared here.
#if defined(__x86_64__)
#define CSECRET_JUMP(name) "  jmp *csecret_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define CSECRET_JUMP(name)                                                                                             \
  "  adrp x16, csecret_slot_" #name "\n"                                                                              \
  "  ldr x16, [x16, :lo12:csecret_slot_" #name "]\n"                                                                  \
  "  br x16\n"
#else
#error "CSecretLoader has no jump for this processor"
#endif
#define CSECRET_FUNCTION(name)                                                                                         \
  __asm__(".text\n"                                                                                                   \
          ".globl csecret_" #name "\n"                                                                                \
          ".hidden csecret_" #name "\n"                                                                               \
          ".type csecret_" #name ", %function\n"                                                                      \
          "csecret_" #name ":\n" CSECRET_JUMP(name) ".size csecret_" #name ", .-csecret_" #name "\n");
CSECRET_FUNCTIONS(CSECRET_FUNCTION)

const char *csecret_load(void) {
  static int is_loaded = 0;
  if (is_loaded) return NULL;
  // With it come GLib and GIO, among whose functions dlsym searches too. It stays loaded: GLib can't be unloaded.
  void *library = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return dlerror();
#define CSECRET_FIND(name)                                                                                             \
  void *found_##name = dlsym(library, #name);                                                                          \
  if (!found_##name) return dlerror();
  CSECRET_FUNCTIONS(CSECRET_FIND)
#define CSECRET_SET(name) csecret_slot_##name = found_##name;
  CSECRET_FUNCTIONS(CSECRET_SET)
  is_loaded = 1;
  return NULL;
}
