// libcurl, loaded with dlopen(3): linked, it would be loaded with each start of a command, of which few use a cluster.
#pragma once

// NULL: it is loaded; else why not. Has to return before a function of CCurl is called, and is called by one thread at a time.
const char *ccurl_load(void);
