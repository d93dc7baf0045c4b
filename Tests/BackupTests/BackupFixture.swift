import Backup
import Formats
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing
import Vault

/// Folders of a user under TMPDIR, gone with the value.
final class BackupFixture {
  let root: String
  let folders: BackupFolders
  let key: [UInt8]
  private let privateKey: SecretBytes

  var file: String { root + "/backup" }

  init() throws {
    let base = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    root = "\(base)/kh-backup-" + String(UInt64.random(in: .min ... .max), radix: 36)
    try #require(unsafe mkdir(root, 0o700) == 0)
    folders = Self.folders(root + "/a")
    privateKey = try SealedFile.makePrivateKey()
    key = try SealedFile.publicKey(of: privateKey)
  }

  deinit { Self.remove(root) }

  /// Folders of another machine, or of the same one with nothing in them.
  var others: BackupFolders { Self.folders(root + "/b") }

  private static func folders(_ home: String) -> BackupFolders {
    BackupFolders(settings: home + "/config", vault: home + "/data/keyhole", state: home + "/state/keyhole")
  }

  /// Two suites, an item, and one of this device only.
  func fill() throws {
    try Files.write("<plist>one</plist>", to: folders.settings + "/one.plist")
    try Files.write(String(repeating: "x", count: 40_000), to: folders.settings + "/two.plist")
    let vault = try engine(folders)
    try add("account", .whenUnlocked, "hunter2", to: vault)
    try add("here", .whenUnlockedThisDeviceOnly, "stays", to: vault)
  }

  func engine(_ folders: BackupFolders) throws -> VaultEngine {
    try VaultEngine(directory: folders.vault, stateDirectory: folders.state)
  }

  func add(_ account: String, _ accessibility: Accessibility, _ secret: String, to vault: VaultEngine) throws
  {
    var item = KeychainSamples.generic("service", ExactString(account))
    item.accessibility = accessibility
    _ = try vault.add(item, secret: Self.secret(Array(secret.utf8)))
  }

  @discardableResult func backUp(_ existing: BackupFile.Existing = .isKept) throws -> BackupSummary {
    try BackupFile(file, of: folders, existing: existing).write(sealedTo: key)
  }

  func opened(_ path: String? = nil) throws -> OpenBackup {
    try BackupInput(path ?? file).opened(privateKey: privateKey)
  }

  @discardableResult func restore(_ folders: BackupFolders, from path: String? = nil) throws -> RestoreReport
  {
    try Restore(folders).run(opened(path)) { _ in }
  }

  /// The content of the sealed file, as records.
  func content() throws -> [UInt8] {
    let bytes = try Files.bytes(file)
    let header = try SealedFileHeader(reading: Array(bytes.prefix(SealedFileHeader.longest)))
    var rest = bytes.dropFirst(min(bytes.count, SealedFileHeader.longest))
    var reader = try SealedFileReader(
      SealedFileOpener(header, privateKey: privateKey), start: Array(bytes.prefix(SealedFileHeader.longest))
    ) { count in
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    var content: [UInt8] = []
    while let piece = try reader.piece() {
      unsafe piece.withUnsafeBytes { unsafe content.append(contentsOf: $0) }
    }
    return content
  }

  /// A file that any holder of the public key can make.
  func forge(_ content: [UInt8]) throws -> String {
    var sealed: [UInt8] = []
    let writer = try SealedFileWriter(.backup, publicKey: key) { sealed += $0 }
    try writer.write(content.span)
    try writer.finish()
    try Files.write(sealed, to: root + "/forged")
    return root + "/forged"
  }

  static func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    var secret = try SecretBytes()
    try unsafe bytes.withUnsafeBytes { try unsafe secret.append($0) }
    return secret
  }

  static func remove(_ path: String) {
    for name in Files.names(path) { remove("\(path)/\(name)") }
    unsafe unlink(path)
    unsafe rmdir(path)
  }
}

/// Files of a test.
enum Files {
  struct Missing: Error {
    let path: String
  }

  static func names(_ folder: String) -> [String] {
    guard let folder = unsafe opendir(folder) else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
        unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  static func write(_ text: String, to path: String) throws { try write(Array(text.utf8), to: path) }

  static func write(_ bytes: [UInt8], to path: String) throws {
    var folder = ""
    for part in path.split(separator: "/").dropLast() {
      folder += "/" + part
      unsafe mkdir(folder, 0o700)
    }
    guard let file = unsafe fopen(path, "w") else { throw Missing(path: path) }
    defer { unsafe fclose(file) }
    try #require(unsafe fwrite(bytes, 1, bytes.count, file) == bytes.count)
  }

  static func bytes(_ path: String) throws -> [UInt8] {
    guard let file = unsafe fopen(path, "r") else { throw Missing(path: path) }
    defer { unsafe fclose(file) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe fread(&part, 1, part.count, file)
      guard count > 0 else { return bytes }
      bytes += part[..<count]
    }
  }

  static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

  static func status(_ path: String) throws -> stat {
    var status = stat()
    try #require(unsafe lstat(path, &status) == 0, "\(path)")
    return status
  }

  /// The paths of all files below a folder.
  static func all(_ folder: String) -> [String] {
    names(folder).flatMap { name -> [String] in
      let below = all("\(folder)/\(name)")
      return below.isEmpty ? ["\(folder)/\(name)"] : below
    }
  }
}
