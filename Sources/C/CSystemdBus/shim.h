// sd-bus(3) of libsystemd. No logic.
#pragma once

#include "functions.h"

// Before the declarations: gives each function its name of CServiceLoader, so that the library is loaded by the process that
// serves, and not with each start of a program.
#define CSERVICE_PRAGMA(text) _Pragma(#text)
#define CSERVICE_RENAME(name) CSERVICE_PRAGMA(redefine_extname name cservice_##name)
CSYSTEMD_BUS_FUNCTIONS(CSERVICE_RENAME)

#include <systemd/sd-bus.h>
