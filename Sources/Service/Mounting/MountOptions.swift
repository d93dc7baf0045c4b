import ClusterAccess
import Control
package import KeychainSelection
import Model
import Platform
import Prompting
import Store

/// The options of `-o` (SPECIFICATION.md, section 10).
package struct MountOptions {
  package var keychain = KeychainConfiguration()
  /// nil: there is no store of a cluster.
  package var cluster: ClusterOptions?
  /// Whether `keychain=` was given.
  private(set) var choosesKeychain = false
  /// The options of the way to a cluster, and `settings=`, until all are known.
  private(set) var ofCluster: [String: String] = [:]
  var isReadOnly = false
  var allowsOthers = false
  var allowsRoot = false
  /// The user, by name or number, for whom root mounts: `uid=` and `gid=`.
  var user: String?
  var group: String?
  /// Serves the keychain on the session bus too, as org.freedesktop.secrets.
  package var servesSecretService = false { didSet { keychain.isServed = servesSecretService } }
  /// Only a folder of that user's, and none of root's: the path may have been one that the user could lead elsewhere.
  var takesUsersFolderOnly = false
  /// The source in the mount table.
  var source = "keyhole"
  /// The settings of Keyhole among them, which come before those of the vault and of the suite `keyhole`.
  private(set) var settings: [ConfigurationKey: SettingValue] = [:]
  /// Whether root mounts for a user.
  package var isForUser: Bool { user != nil || group != nil }
  /// Options that the kernel or fusermount3 understands.
  var forKernel: [String] = []

  /// Words that complete a list of options; those that end in `=` take a value.
  static let words =
    KeychainChoice.allCases.map { "keychain=\($0.rawValue)" }
    + ConfigurationKey.allCases.flatMap(\.mountOptions) + [
      "store=etcd://", "settings=cluster", "settings=files", "etcd-ca=", "etcd-cert=", "etcd-key=",
      "etcd-user=",
      "etcd-password-descriptor=", "layers=", "write-layer=", "offline-secrets", "offline-secrets=",
      "plain-session", "ro", "allow_other",
      "allow_root", "uid=", "gid=",
      "vault=",
      "fsname=", "noatime", "nosuid", "nodev", "noexec", "sync",
    ]

  /// - Throws: `UsageError` that names an unknown option, or a value that an option can't have.
  package init(_ lists: [String]) throws {
    for option in lists.flatMap(Self.options) {
      let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      try apply(String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
    }
    if allowsOthers, allowsRoot {
      throw UsageError(message: "mount options `allow_other` and `allow_root`: it is one or the other")
    }
    try applyCluster()
  }

  init() {}

  /// The options of a list. The servers of a store have commas between them, too, and so have layers, whose names have a `/`.
  private static func options(of list: String) -> [String] {
    var options: [String] = []
    for part in list.split(separator: ",") {
      if let last = options.last, last.hasPrefix(storeBeginning),
        !last.dropFirst(storeBeginning.count).contains("/")
      {
        options[options.count - 1] += "," + part
      } else if let last = options.last, last.hasPrefix("layers="), part.contains("/"), !part.contains("=") {
        options[options.count - 1] += "," + part
      } else {
        options.append(String(part))
      }
    }
    return options
  }

  private static let storeBeginning = "store=" + ClusterAddress.scheme

  private mutating func apply(_ name: String, _ given: String?) throws {
    // The bare word is older than the setting.
    let value = name == ConfigurationKey.plainSession.rawValue ? given ?? "yes" : given
    if let value, let key = ConfigurationKey(rawValue: name), key.definition.isMountOption,
      let setting = try Self.setting(key, value)
    {
      settings[key] = setting
      // The commands without a mount go by it too.
      if KeychainConfiguration.historyKeys.contains(key) { keychain.history[key] = setting }
      if key == .plainSession { keychain.plainSession = setting == .bool(true) }
      return
    }
    switch (name, value) {
    case ("keychain", let value?):
      keychain.choice = try Self.keychain(value)
      choosesKeychain = true
    case ("store", let value?), ("settings", let value?), ("etcd-password-descriptor", let value?),
      ("layers", let value?), ("write-layer", let value?), ("offline-secrets", let value?):
      ofCluster[name] = value
    case ("offline-secrets", nil): ofCluster[name] = "\(ClusterOptions.usualOfflineDays)"
    case (_, let value?) where ClusterOption(rawValue: name) != nil:
      ofCluster[name] = name == ClusterOption.user.rawValue ? value : try Self.path(name, value)
    case ("ro", nil): isReadOnly = true
    case ("rw", nil): isReadOnly = false
    case ("allow_other", nil): allowsOthers = true
    case ("allow_root", nil): allowsRoot = true
    case ("uid", let value?): user = value
    case ("gid", let value?): group = value
    case ("folder", "user"): takesUsersFolderOnly = true
    case ("fsname", let value?) where !value.isEmpty: source = value
    case ("vault", let value?): keychain.vault = try Self.path(name, value)
    default: try applyUsual(name, value)
    }
  }

  /// Options of mount(8) that make sense for any file system.
  private mutating func applyUsual(_ name: String, _ value: String?) throws {
    let ignored = [
      "defaults", "auto", "noauto", "user", "users", "nouser", "owner", "group", "_netdev", "nofail",
      "suid", "dev", "exec", "loud", "silent",
    ]
    let passed = [
      "nosuid", "nodev", "noexec", "atime", "noatime", "relatime", "diratime", "nodiratime", "sync",
      "async", "dirsync",
    ]
    if value == nil, ignored.contains(name) { return }
    // mount(8) names the user who may unmount as `user=NAME`.
    if name.hasPrefix("x-") || name.hasPrefix("X-") || name == "comment" || name == "user" { return }
    guard value == nil, passed.contains(name) else {
      let option = (value.map { "\(name)=\($0)" } ?? name).abbreviated
      let known = Set(Self.words.map { String($0.prefix { $0 != "=" }) })
      // A known one is wrong in its value.
      let likely = known.contains(name) ? nil : Spelling.nearest(to: name, among: known.sorted())
      throw UsageError(
        message: "unknown mount option `\(option)`" + (likely.map { "; did you mean `\($0)`?" } ?? ""))
    }
    forKernel.append(name)
  }

  private static func keychain(_ value: String) throws -> KeychainChoice {
    guard let choice = KeychainChoice(rawValue: value) else {
      let words = KeychainChoice.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(message: "mount option `keychain=\(value)`: it is one of \(words)")
    }
    return choice
  }

  /// nil: the option has no such value.
  private static func setting(_ key: ConfigurationKey, _ value: String) throws -> SettingValue? {
    switch key.definition.kind {
    case .bool:
      (key == .echo ? ["on": true, "off": false] : ["yes": true, "no": false])[value].map { .bool($0) }
    // A question that may wait for no second could not be answered.
    case .number(_, .seconds):
      .integer(Int128(max(key == .authTimeout ? 1 : 0, try seconds(key.rawValue, value))))
    case .number(let range, let unit):
      .integer(Int128(try number(key.rawValue, value, range.upperBound, of: unit.rawValue)))
    case .program: .string(ExactString(try program(key.rawValue, value)))
    case .word(let words): words.contains(value) ? .string(ExactString(value)) : nil
    case .programs: nil
    }
  }

  private static func seconds(_ name: String, _ value: String) throws -> Int {
    guard let seconds = UInt16(value) else {
      throw UsageError(message: "mount option `\(name)=\(value)`: it takes a number of seconds")
    }
    return Int(seconds)
  }

  private static func number(
    _ name: String, _ value: String, _ most: Int, of things: String
  ) throws -> Int {
    guard let number = Int(value), (0...most).contains(number) else {
      throw UsageError(
        message: "mount option `\(name)=\(value.abbreviated)`: it takes a number of \(things), 0 to \(most)")
    }
    return number
  }

  /// - Throws: `Failure` for the path of a program that can't be run: it would refuse every secret.
  static func requireProgram(_ key: ConfigurationKey, _ path: String) throws {
    do throws(Errno) { try Files.require(.execute, path) } catch {
      throw Failure(key.rawValue, "\(path.abbreviated) can't be run: \(error.description)")
    }
  }

  /// A program that is not there would refuse every secret.
  private static func program(_ name: String, _ value: String) throws -> String {
    let path = try path(name, value)
    do throws(Errno) { try Files.require(.execute, path) } catch {
      throw UsageError(
        message:
          "mount option `\(name)=\(value.abbreviated)`: this program can't be run: \(error.description)")
    }
    return path
  }

  private static func path(_ name: String, _ value: String) throws -> String {
    guard value.hasPrefix("/") else {
      throw UsageError(message: "mount option `\(name)=\(value)`: it takes a path that begins with `/`")
    }
    return value
  }

  /// The options for libfuse.
  var sessionOptions: [String] {
    var options = ["fsname=\(source)", "subtype=keyhole", "nosuid", "nodev", "noexec"]
    if isReadOnly { options.append("ro") }
    // Without default_permissions, users that are let in could read the secrets.
    if allowsOthers || allowsRoot { options.append("default_permissions") }
    if allowsOthers { options.append("allow_other") }
    // libfuse lets all users in and refuses all but root and the owner; so it is one or the other.
    if allowsRoot, !allowsOthers { options.append("allow_root") }
    return options + forKernel.filter { !options.contains($0) }
  }
}

extension ConfigurationKey {
  /// The beginnings of a mount option, as a shell completes them.
  fileprivate var mountOptions: [String] {
    guard definition.isMountOption else { return [] }
    switch definition.kind {
    case .bool: return (self == .echo ? ["on", "off"] : ["yes", "no"]).map { "\(rawValue)=\($0)" }
    case .word(let words): return words.map { "\(rawValue)=\($0)" }
    case .number, .program, .programs: return [rawValue + "="]
    }
  }
}
