#include "wordlist.h"

// The file is part of the executable: nothing has to be found on the disk.
static const unsigned char words[] = {
#embed "eff-long.txt"
};
const size_t wordlist_eff_long_size = sizeof words;

const unsigned char *wordlist_eff_long_start(void) { return words; }
