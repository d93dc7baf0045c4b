import Formats
import Model
import Platform
import Suites
import Vault

/// Writes what a backup holds beside its places.
final class RestorePreparation {
  private struct Target {
    let path: String
    let file: OpenFile
    /// The suite's time; nil: it is a file with times of keys.
    let modified: Timestamp?
  }

  private let folders: BackupFolders
  private let places: RestorePlaces
  private let suites: PropertyListFolder
  private var vault: VaultBuilder?
  private var target: Target?
  private var suite = ""
  /// Whether the suite is there already with the same content: then its times stay as well.
  private var isSame = false

  /// The moves, the vault's first.
  private(set) var moves: [RestoreMove] = []
  private(set) var suitesMoved: UInt64 = 0
  /// The suites of which no versions are to be kept.
  private var withoutVersions: [ExactString] = []

  init(_ folders: BackupFolders, _ places: RestorePlaces) {
    self.folders = folders
    self.places = places
    suites = PropertyListFolder(folder: folders.settings, stateFolder: folders.state)
  }

  func take(_ record: consuming BackupRecord) throws {
    switch consume record {
    case .version: break
    case .suite(let name, let modified): try begin(name, modified)
    case .times: try beginTimes()
    case .bytes(let bytes): try target?.file.write(bytes)
    case .noVersions: withoutVersions.append(suiteName)
    case .vault(let record): try add(record)
    case .keyFile(let key): try vault?.write(key: key)
    case .end: try end()
    }
  }

  // MARK: Settings

  private func begin(_ name: String, _ modified: Timestamp) throws {
    try closeFile()
    suite = name
    try open("\(places.preparedSettings)/\(name)", modified)
  }

  private func beginTimes() throws {
    try closeFile()
    guard !isSame else { return }
    try open("\(places.preparedTimes)/\(timesName)", nil)
  }

  private var timesName: String {
    Files.name(of: suites.timesFile(of: suiteName))
  }

  private var suiteName: ExactString { ExactString(String(suite.dropLast(".plist".count))) }

  private func open(_ path: String, _ modified: Timestamp?) throws {
    UserFolders.make(Files.folder(of: path))
    let file = try OpenFile(path, [.writing, .create, .exclusive, .noFollow])
    target = Target(path: path, file: file, modified: modified)
  }

  /// A file is complete when the next one begins.
  private func closeFile() throws {
    guard let target else { return }
    self.target = nil
    if let modified = target.modified { try target.file.setModified(modified) }
    try target.file.synchronize()
    guard target.modified != nil else {
      return moves.append(
        try RestoreMove(
          target.path, to: suites.timesFile(of: suiteName),
          aside: "\(places.asideTimes)/\(timesName)"))
    }
    let place = "\(folders.settings)/\(suite)"
    isSame = FileComparison.isSame(target.path, place)
    guard !isSame else { return _ = try? Files.remove(target.path) }
    suitesMoved += 1
    moves.append(try RestoreMove(target.path, to: place, aside: "\(places.asideSettings)/\(suite)"))
  }

  /// Before the first move, so that no process keeps what the suites have then. What is kept of a suite that is there stays.
  func switchOffVersions() throws(BackupError) {
    for suite in withoutVersions {
      do throws(StoreError) { try suites.endVersions(of: suite) } catch {
        throw BackupError(
          nil, "the history of the suite \(suite.string) can't be switched off: \(error.message)")
      }
    }
  }

  // MARK: The vault

  private func add(_ record: VaultArchive.Record) throws {
    if case .format = record {
      try closeFile()
      UserFolders.make(places.preparedVault)
      vault = try VaultBuilder(places.preparedVault)
    }
    try vault?.add(record)
  }

  private func end() throws {
    try closeFile()
    for folder in [places.preparedSettings, places.preparedTimes] {
      Folder.synchronize(around: folder + "/x")
    }
    guard let vault else { return }
    try vault.finish()
    Folder.synchronize(around: places.preparedVault)
    // An empty folder is nothing to set aside.
    try? Files.removeFolder(folders.vault)
    moves.insert(
      try RestoreMove(places.preparedVault, to: folders.vault, aside: places.asideVault), at: 0)
  }
}

/// Where a restore prepares files, and where it sets aside what it finds.
struct RestorePlaces {
  let preparedVault: String
  let preparedSettings: String
  let preparedTimes: String
  let asideVault: String
  let asideSettings: String
  let asideTimes: String

  var prepared: [String] { [preparedVault, preparedSettings, preparedTimes] }

  init(_ folders: BackupFolders, at time: Timestamp = .now) {
    preparedVault = folders.vault + ".restoring"
    preparedSettings = folders.settings + "/.keyhole-restoring"
    preparedTimes = folders.state + "/times.restoring"
    let digits = time.iso8601.filter { $0 != "-" && $0 != ":" }
    let paths = { (number: Int) in
      let end = "set-aside-\(digits)" + (number < 2 ? "" : "-\(number)")
      return [
        "\(folders.vault)-\(end)", "\(folders.settings)/keyhole-\(end)", "\(folders.state)/times-\(end)",
      ]
    }
    let number = (1..<1_000).first { !paths($0).contains(where: Files.hasName) } ?? 1_000
    let free = paths(number)
    (asideVault, asideSettings, asideTimes) = (free[0], free[1], free[2])
  }

  /// Removes what was prepared and is not to be moved any more.
  static func remove(_ prepared: [String]) {
    for folder in prepared {
      for name in (try? Files.names(in: folder)) ?? [] { _ = try? Files.remove("\(folder)/\(name)") }
      try? Files.removeFolder(folder)
    }
  }
}

/// Whether two files have the same content, whatever their size.
enum FileComparison {
  private static let part = 16 * 1024

  static func isSame(_ path: String, _ other: String) -> Bool {
    guard let first = try? OpenFile(path), let second = try? OpenFile(other, [.reading, .nonBlocking]),
      let status = try? second.status(), status.isRegular
    else { return false }
    while true {
      guard let bytes = try? first.read(part), let others = try? second.read(part), bytes == others else {
        return false
      }
      if bytes.isEmpty { return true }
    }
  }
}
