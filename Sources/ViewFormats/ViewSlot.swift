/// The place of a value in a template: its name in the file, where the value comes from, and how it is written.
public struct ViewSlot: Hashable, Sendable {
  /// The name path of the entry, unique within the view.
  ///
  /// | format | name path |
  /// |---|---|
  /// | `env` | `[NAME]` |
  /// | `json` | the keys and the indexes of arrays down to the value |
  /// | `ini` | `[SECTION, KEY]`, of nested settings `[SECTION, KEY, SUBKEY]` |
  /// | `netrc` | `[MACHINE, LOGIN, "password"]` or `"account"`; `[MACHINE, "password"]` without a login |
  /// | `npmrc` | `[KEY]`, in a section `[SECTION, KEY]`; the second and later ones of an array `KEY[]` have `[…, KEY, NUMBER]` |
  /// | `pgpass` | `[HOST, PORT, DATABASE, USER]` |
  /// | `docker-config` | the keys, as in JSON; of `auth` followed by the user: `["auths", HOST, "auth", USER]` |
  /// | `template` | `[PATH]`, of later references to the same path `[PATH, NUMBER]` |
  public let name: [String]
  /// The path in Keyhole's tree whose content is the value, such as `keychain/generic/app/token`.
  public let reference: String
  /// How many bytes of the template's text come before it.
  let offset: Int
  let style: SlotStyle

  func withReference(_ reference: String) -> ViewSlot {
    ViewSlot(name: name, reference: reference, offset: offset, style: style)
  }
}

/// How a value is written into the text.
struct SlotStyle: Hashable, Sendable {
  var coding: ValueCoding
  /// The steps in which the source spelled it, where the coding alone would spell it otherwise. They hold no byte of the value.
  var spelling: [SpellingStep] = []
  /// `USER:`, which comes before the password in docker's `auth`.
  var user: [UInt8] = []
}

/// The raw values are stored: they are not changed, and new ones come last.
enum ValueCoding: UInt8, CaseIterable, Sendable {
  /// As it is, or as the format writes it without quotes.
  case bare = 0
  case singleQuoted = 1
  case doubleQuoted = 2
  case backquoted = 3
  case jsonNumber = 4
  /// With its quotes.
  case jsonString = 5
  /// A JSON string whose text is base 64 of `USER:` and the value.
  case basicAuthentication = 6
  // Filters of templates.
  case envFilter = 7
  case iniFilter = 8
  case urlFilter = 9
  case base64Filter = 10
  case lineFilter = 11
}

/// A step of how a value's bytes stand in the text.
enum SpellingStep: Hashable, Sendable {
  /// So many bytes of the value as they are.
  case verbatim(Int)
  /// Bytes of the text that are none of the value: quotes, a backslash before a character that stands for itself.
  case syntax([UInt8])
  /// A backslash and a letter, such as `\n`, for one byte.
  case letter
  /// `\uXXXX` for a scalar below U+10000. Bit n: digit n, counted from the right, is an upper-case letter.
  case unit(UInt8)
  /// Two of them for a scalar above: the four bits of the first one above those of the second.
  case pair(UInt8)
}
