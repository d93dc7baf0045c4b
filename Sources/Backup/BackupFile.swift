import Formats
import Model
import Platform
public import SecretMemory
import Suites
import Vault

/// Writes backups.
public struct BackupFile {
  /// The treatment of a file of that name.
  public enum Existing: Sendable {
    case isKept
    /// Once the new one is complete and was read back.
    case isReplaced
  }

  /// The steps of a backup.
  public enum Step: Sendable {
    case writing
    case readingBack
  }

  private typealias Sealing =
    (@escaping SealedFileWriter.Output) throws(FormatError) -> SealedFileWriter

  private let path: String
  private let folders: BackupFolders
  private let existing: Existing

  /// Called with the path of each file that is named like a suite and is left out, and the reason.
  public var onOmission: (_ path: String, _ reason: String) -> Void = { _, _ in }

  /// Called while it works, with the bytes so far. The size of what is written is that of the stores at the beginning.
  public var onProgress: ((_ step: Step, _ done: Int, _ size: Int) -> Void)?

  /// - Throws: `BackupError` where a file is there that is to be kept.
  public init(_ path: String, of folders: BackupFolders, existing: Existing) throws(BackupError) {
    self.path = try Self.resolved(path)
    self.folders = folders
    self.existing = existing
    if existing == .isKept, Files.hasName(path) { throw taken }
    let status = try? Files.status(self.path, followingLinks: false)
    guard status?.isRegular != false else {
      throw BackupError(path, "it is no file; nothing was written")
    }
  }

  /// Where a symbolic link leads: a backup that is meant for another disk must not come to lie beside the link.
  private static func resolved(_ path: String) throws(BackupError) -> String {
    guard let status = try? Files.status(path, followingLinks: false), status.isLink else { return path }
    guard let target = try? Files.realPath(path) else {
      throw BackupError(path, "it is a link that leads nowhere; nothing was written")
    }
    return target
  }

  /// Writes the backup beside its place, brings it to the disk, reads it back, and gives it its name.
  ///
  /// `cost`: one of `SealedFile.passphraseCosts`.
  public func write(
    sealedTo passphrase: borrowing SecretBytes, cost: UInt8
  ) throws(BackupError) -> BackupSummary {
    // A closure can't borrow the passphrase.
    let copy = try SharedSecret(passphrase, path)
    return try write { (output) throws(FormatError) in
      try SealedFileWriter(.backup, passphrase: copy.bytes, cost: cost, output: output)
    }
  }

  /// The same for a key that `BackupKey` made.
  public func write(sealedTo publicKey: [UInt8]) throws(BackupError) -> BackupSummary {
    try write { (output) throws(FormatError) in
      try SealedFileWriter(.backup, publicKey: publicKey, output: output)
    }
  }

  private var taken: BackupError {
    BackupError(path, "the file is there already; nothing was written (--replace overwrites it)")
  }
}

extension BackupFile {
  private func write(_ sealing: Sealing) throws(BackupError) -> BackupSummary {
    removeLeftovers()
    let temporary = "\(path).\(CurrentProcess.number)\(Self.ending)"
    do throws(BackupError) {
      let summary = try attempt(path) { try write(to: temporary, sealing) }
      try giveName(temporary)
      Folder.synchronize(around: path)
      return summary
    } catch {
      _ = try? Files.remove(temporary)
      throw error
    }
  }

  private func write(to temporary: String, _ sealing: Sealing) throws -> BackupSummary {
    let file = try makeFile(temporary)
    if let onProgress {
      let size = storedSize
      var done = 0
      file.onTransfer = { count in
        done += count
        onProgress(.writing, done, size)
      }
    }
    let sealed = try sealing { (bytes) throws(FormatError) in try file.write(bytes) }
    let summary = try fill(RecordWriter(sealed, created: .now))
    try file.synchronize()
    var input = try BackupInput(temporary)
    input.onProgress = onProgress.map { progress in { progress(.readingBack, $0, $1) } }
    guard try input.check(openedBy: sealed) == summary else {
      throw BackupError(path, "what was written could not be read back; check the disk")
    }
    return summary
  }

  /// Of the settings and the vault, in bytes.
  private var storedSize: Int {
    let suites = ((try? suiteFiles(onOmission: { _, _ in })) ?? []).map { "\(folders.settings)/\($0)" }
    return (suites + ["vault.db", "vault.db-wal"].map { "\(folders.vault)/\($0)" }).reduce(0) { size, path in
      size &+ Int(clamping: (try? Files.status(path))??.size ?? 0)
    }
  }

  private func makeFile(_ temporary: String) throws(BackupError) -> OpenFile {
    do throws(BackupError) {
      return try OpenFile(temporary, [.writing, .create, .exclusive, .noFollow])
    } catch {
      throw BackupError(path, "it can't be written: \(error.reason)")
    }
  }

  private func fill(_ writer: RecordWriter) throws -> BackupSummary {
    let suites = PropertyListFolder(folder: folders.settings, stateFolder: folders.state)
    for name in try suiteFiles(onOmission: onOmission) {
      guard let suite = Folder.suite(ofFile: name) else { continue }
      // The copy has the changes that only a journal has.
      try? suites.fold(suite)
      let path = "\(folders.settings)/\(name)"
      let isWritten = try writer.write(
        suite: name, at: path, times: suites.timesFile(of: suite),
        keepsVersions: suites.keepsVersions(of: suite))
      if isWritten { continue }
      // One that is gone by now was removed by its owner.
      guard Files.hasName(path) else { continue }
      onOmission(
        path,
        (try? Files.target(ofLink: path)) == nil
          ? "it is no regular file" : "it is a link that leads to no file")
    }
    if try attempt(folders.vault, { try VaultArchive.exists(in: folders.vault) }) {
      try attempt(folders.vault) { try addVault(to: writer) }
    }
    try writer.finish()
    return writer.summary
  }

  /// The names that can be those of suites.
  private func suiteFiles(
    onOmission: (_ path: String, _ reason: String) -> Void
  ) throws(BackupError) -> [String] {
    try Folder.list(folders.settings).filter { $0.suffix(6).elementsEqual(".plist".utf8) }.compactMap {
      name in
      if let text = String(validating: name, as: UTF8.self) { return text }
      onOmission("\(folders.settings)/\(Folder.text(ofForeign: name))", "its name is not UTF-8")
      return nil
    }.sorted()
  }

  private func addVault(to writer: RecordWriter) throws {
    let summary = try VaultArchive.read(folders.vault, stateFolder: folders.state) { record in
      try writer.write(record)
    }
    writer.count(summary)
    guard summary.needsKeyFile else { return }
    try writer.write(keyFile: VaultArchive.keyFile(folders.vault, stateFolder: folders.state))
  }

  /// In one step: a file of that name that has come up meanwhile is kept as well.
  private func giveName(_ temporary: String) throws(BackupError) {
    do throws(Errno) {
      if existing == .isKept { return try Files.renameWithoutReplacing(temporary, to: path) }
      try Files.rename(temporary, to: path)
    } catch {
      switch error {
      case .EEXIST where existing == .isKept: throw taken
      // Not every file system can do that.
      case .EINVAL, .ENOSYS, .EOPNOTSUPP: try giveNameInTwoSteps(temporary)
      default: throw failure(error)
      }
    }
  }

  private func giveNameInTwoSteps(_ temporary: String) throws(BackupError) {
    if existing == .isKept, Files.hasName(path) { throw taken }
    do { try Files.rename(temporary, to: path) } catch { throw failure(error) }
  }

  private func failure(_ error: Errno) -> BackupError { BackupError(path, "it can't be written: \(error)") }

  private static let ending = ".part"

  /// The remains of processes that were killed while they wrote a backup of this name.
  private func removeLeftovers() {
    let folder = Files.folder(of: path)
    let start = Files.name(of: path) + "."
    for name in (try? Files.names(in: folder)) ?? []
    where name.hasPrefix(start) && name.hasSuffix(Self.ending) {
      guard let process = Int32(name.dropFirst(start.count).dropLast(Self.ending.count)),
        process == CurrentProcess.number || !ProcessNumber.isTaken(process)
      else { continue }
      _ = try? Files.remove("\(folder)/\(name)")
    }
  }
}

/// A secret that closures can use.
private final class SharedSecret {
  let bytes: SecretBytes

  init(_ secret: borrowing SecretBytes, _ subject: String) throws(BackupError) {
    do { bytes = try SecretBytes(copying: secret) } catch { throw BackupError(about: subject, error) }
  }
}
