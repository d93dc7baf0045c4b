/// The measured folders: the same names in the stores, in the mount and on a tmpfs.
enum Stores {
  static let many = "benchmark.many"
  static let thousand = "benchmark.thousand"
  static let few = "benchmark.few"
  static let heard = "benchmark.heard"
  static let service = "benchmark"
  /// As long as the content of hello_ll's only file.
  static let value = "Hello World!"

  static func key(_ index: Int) -> String { numbered("key", index) }
  static func account(_ index: Int) -> String { numbered("account", index) }

  /// The folder of a suite in a mount.
  static func suite(_ name: String, in mount: String) -> String { "\(mount)/defaults/\(name)" }

  /// The folder of the item that is read and written.
  static func item(_ index: Int = 1, in mount: String) -> String {
    "\(mount)/keychain/generic/\(service)/\(account(index))"
  }

  private static func numbered(_ word: String, _ index: Int) -> String {
    let digits = String(index)
    return word + "-" + String(repeating: "0", count: max(0, 5 - digits.count)) + digits
  }

  /// Writes the suites as the property lists that Foundation would have written.
  static func writeSuites(to folder: String, keys: Int) throws(Failure) {
    try makeFolder(folder)
    let folder = try Folder(folder)
    for (suite, count) in [(many, keys), (thousand, 1_000), (few, 10), (heard, 1)] {
      try folder.write(propertyList(keys: count), to: suite + ".plist")
    }
  }

  /// A folder of as many files with the same names and values.
  static func writeFiles(to path: String, keys: Int) throws(Failure) {
    try makeFolder(path)
    let folder = try Folder(path)
    for index in 0..<keys { try folder.write(value + "\n", to: key(index)) }
  }

  /// Fills the keychain the way a user does, through the mount.
  static func writeItems(to mount: String, items: Int) throws(Failure) {
    for index in 0..<items {
      let item = "\(mount)/keychain/generic/\(service)/\(account(index))"
      try makeFolder(item)
      try Folder(item).write(value + "\n", to: "value")
    }
  }

  /// Lays a keyring without a password where gnome-keyring-daemon finds it.
  static func writeKeyring(to folder: String, items: Int) throws(Failure) {
    try makeFolder(folder)
    var text = """
      [keyring]
      display-name=\(service)
      ctime=0
      mtime=0
      lock-on-idle=false
      lock-after=false

      """
    for index in 1...items { text += keyringItem(index) }
    try Folder(folder).write(text, to: service + ".keyring")
  }

  private static func keyringItem(_ index: Int) -> String {
    """

    [\(index)]
    item-type=0
    display-name=\(service)
    secret=\(value)
    mtime=1
    ctime=1

    [\(index):attribute0]
    name=service
    type=string
    value=\(service)

    [\(index):attribute1]
    name=account
    type=string
    value=\(account(index))

    """
  }

  static func propertyList(keys: Int, value: String = value) -> String {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>

      """
    for index in 0..<keys { text += "\t<key>\(key(index))</key>\n\t<string>\(value)</string>\n" }
    return text + "</dict>\n</plist>\n"
  }
}
