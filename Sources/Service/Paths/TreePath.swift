package import Model
import Store
import Tree

/// One key of a suite.
package struct SettingKey: Hashable, Sendable {
  package let suite: ExactString
  package let key: ExactString
}

/// A path of the tree as a user types it: `defaults/com.example.app/volume`.
package struct TreePath: Hashable, Sendable {
  package let components: [String]

  package init(_ string: String) {
    // By scalars: a slash and a combining mark behind it are one Character.
    components = string.unicodeScalars.split(separator: "/").map { String($0) }.filter { $0 != "." }
  }

  init(components: [String]) {
    self.components = components
  }

  /// Not by `joined(separator:)`: its generic code is a tenth of all that `keyhole get` executes.
  package var string: String {
    var text = components.first ?? ""
    for name in components.dropFirst() {
      text += "/"
      text += name
    }
    return text
  }

  package var name: String { components.last ?? "" }

  package var needsKeychain: Bool {
    components.isEmpty || components.first == "keychain" || isView || isInHistoryOfItems
  }

  /// Whether it is `.keyhole/history`, or something in it that is no setting's.
  private var isInHistoryOfItems: Bool {
    components.starts(with: [".keyhole", "history"]) && !components.dropFirst(2).starts(with: ["defaults"])
  }

  /// Whether it is a setting of Keyhole's own.
  var isOfConfiguration: Bool {
    settingKey.map { $0.suite == SuiteConfiguration.suite } ?? false
  }

  /// Whether a secret stands there: then no value is taken as an argument.
  package var isSecret: Bool { components.first == "keychain" || isView }

  /// Whether it is the path of a view or a template, or of the folder of these.
  package var isView: Bool { components.first == "views" || components.first == "templates" }

  /// The remedy where the last name of this path is reserved for scratch files; nil: it is not.
  var storedName: String? {
    switch (components.first, components.count) {
    case ("defaults", 3) where ScratchName.isScratchInSuite(name.utf8):
      guard name.hasPrefix(".") else { return "Give the key another name" }
      return "The key is written \(parent.appending("%2E" + name.dropFirst()).string)"
    case ("views", 2) where ScratchName.isScratchInSuite(name.utf8),
      ("templates", 2) where ScratchName.isScratchInSuite(name.utf8):
      return "Give the view another name"
    case ("keychain", 5) where !isSecretFile && components[1] != "other",
      ("keychain", 4) where !isSecretFile && components[1] == "other":
      return
        "The secret's file is \(parent.appending("value").string); a slash in a name is written %2F"
    default: return nil
    }
  }

  /// Whether it is that of an item's one-time code, or of what codes are computed from.
  var isOfCode: Bool { isOtpauth || parent.isItem && name == ItemSecrets.codeName }

  /// Whether the last name is that of a file with a secret.
  private var isSecretFile: Bool { name == "value" || isOtpauth }

  /// Whether it is that of an item's `otpauth:` URI.
  package var isOtpauth: Bool { components.first == "keychain" && name == ItemSecrets.otpauthName }

  /// Whether it is the path of an item, or of a file of one, by its length.
  package var isInItem: Bool { isItem || parent.isItem }

  /// Whether another path leads through this one.
  func isAbove(_ path: String) -> Bool { components.isEmpty || path.hasPrefix(string + "/") }

  /// Whether it has the form of an item's folder.
  package var isItem: Bool {
    guard components.first == "keychain", components.count > 2 else { return false }
    return components.count == (components[1] == "other" ? 3 : 4)
  }

  /// Whether it has the form of a key's path.
  package var isKey: Bool { components.first == "defaults" && components.count == 3 }

  /// The key that it leads to, where the names say so by themselves; nil: the others are needed to tell, or it leads elsewhere.
  var settingKey: SettingKey? {
    guard isKey, !ScratchName.isScratchInSuite(name.utf8),
      let suite = try? PathName(lookingUp: components[1].utf8).plain,
      let key = try? PathName(lookingUp: name.utf8).plain
    else { return nil }
    return SettingKey(suite: suite, key: key)
  }

  /// The file that a command reads or writes: of an item the one with its secret.
  package var ofValue: TreePath { isItem ? appending("value") : self }

  package func appending(_ name: String) -> TreePath { TreePath(components: components + [name]) }

  package var parent: TreePath { TreePath(components: components.dropLast()) }
}
