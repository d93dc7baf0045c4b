#ifndef WORDLIST_H
#define WORDLIST_H

#include <stddef.h>

// The EFF's long list of words for passphrases: 7,776 words of which none is the beginning of another, a line feed after each.
//
// Copyright 2016 Electronic Frontier Foundation, <https://www.eff.org/dice>, under the Creative Commons Attribution 3.0 licence
// (CC-BY-3.0). The words are unchanged; the numbers of the dice are left out.
const unsigned char *wordlist_eff_long_start(void);
// In bytes.
extern const size_t wordlist_eff_long_size;

#endif
