/// Which names are scratch (SPECIFICATION.md, section 6).
public enum ScratchName {
  /// In a suite: what editors and `sed -i` call their temporary, backup and lock files. `x.bak`, `x.tmp`
  /// and `#x` are ordinary keys.
  public static func isScratchInSuite(_ name: some Collection<UInt8>) -> Bool {
    let name = String(decoding: name, as: UTF8.self)
    if name.hasPrefix(".") || name.hasSuffix("~") { return true }
    if name.count > 2, name.hasPrefix("#"), name.hasSuffix("#") { return true }
    if [".swp", "___jb_tmp___", "___jb_old___"].contains(where: name.hasSuffix) { return true }
    return isSedTemporary(name) || isVimProbe(name)
  }

  /// `sedXXXXXX`, as mkostemp(3) makes it.
  private static func isSedTemporary(_ name: String) -> Bool {
    let suffix = name.utf8.dropFirst(3)
    return name.hasPrefix("sed") && suffix.count == 6
      && suffix.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: false
        }
      }
  }

  /// `4913`, and the next tries where that is taken: vim looks whether it may write in a directory.
  private static func isVimProbe(_ name: String) -> Bool {
    guard let number = Int(name), String(number) == name, number >= 4913 else { return false }
    return (number - 4913) % 123 == 0
  }
}
