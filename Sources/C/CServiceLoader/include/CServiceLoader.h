// The libraries of the process that serves org.freedesktop.secrets, loaded with dlopen(3): linked, they would be loaded with
// each start of a command.
#pragma once

// libsystemd, and what it depends on. NULL: it is loaded; else why not. Has to return before a function of CSystemdBus is called.
const char *cservice_load_bus(void);

// The same for libgcrypt and CGcrypt.
const char *cservice_load_gcrypt(void);
