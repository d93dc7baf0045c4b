// ICU's data with an empty table of contents, in place of 34 MB of languages and calendars that Foundation
// brings and Keyhole never asks for. A request for one of them fails as if it were not there. The layout is
// that of ICU's ucmndata.h and udata.h, and has been the same since ICU 2.
#include <stdint.h>

struct Table {
  uint16_t headerSize;
  uint8_t magic[2];
  uint16_t infoSize, reserved;
  uint8_t isBigEndian, charset, charSize, reserved2;
  uint8_t format[4], formatVersion[4], dataVersion[4];
  uint8_t padding[8];
  uint32_t count, end;
};

__attribute__((aligned(16))) const struct Table ICU_DATA = {
    .headerSize = 32,
    .magic = {0xDA, 0x27},
    .infoSize = 20,
    .charSize = 2,
    .format = {'T', 'o', 'C', 'P'},
    .formatVersion = {1},
};
