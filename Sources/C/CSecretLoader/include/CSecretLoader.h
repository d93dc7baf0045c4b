// libsecret and GLib, loaded with dlopen(3) when a keyring is first asked for. No logic.
#pragma once

// Loads the libraries, unless they are loaded already. Functions of CSecret may be called after it has returned NULL; before,
// they end the process. Not for two threads at once.
//
// Returns NULL, or why it failed: the text of dlerror(3), valid until the thread's next call of dlopen(3) or dlsym(3).
const char *csecret_load(void);
