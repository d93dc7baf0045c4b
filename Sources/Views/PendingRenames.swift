import Platform

/// Renames of settings that views could not follow because the vault was locked: a file of the state folder that lives until it is open.
///
/// A line has the old path, a tab and the new path. Names of settings are no secrets; which views refer to them is not written.
public struct PendingRenames: Sendable {
  /// In bytes; renames beyond it are not followed, and `keyhole doctor` names the views.
  private static let limit: Int64 = 256 * 1024

  private let path: String
  /// The lines that are being finished.
  private var taken: String { path + ".taken" }

  /// Names the file; nothing is created.
  public init(stateFolder: String) { path = stateFolder + "/renames" }

  var isEmpty: Bool { !Files.hasName(path) && !Files.hasName(taken) }

  /// Adds renames that are about to happen, as far as there is room for them.
  public func add(_ renames: [Views.SettingRename], _ paths: any ViewPaths) {
    let bytes = renames.flatMap { Array($0.line(paths).utf8) + [UInt8(ascii: "\n")] }
    guard let file = try? Descriptor(path, [.writing, .create, .append, .noFollow, .nonBlocking]),
      let status = try? file.status, status.isRegular, status.size <= Self.limit &- Int64(bytes.count)
    else { return }
    try? file.write(bytes)
  }

  /// The lines that were added until now; `finish` has to follow once they are finished. Those that come meanwhile wait for the next
  /// time.
  func take() -> [String] {
    // Those of an earlier time that was interrupted come first.
    if !Files.hasName(taken) { try? Files.rename(path, to: taken) }
    guard let bytes = try? Files.read(taken), let text = String(validating: bytes, as: UTF8.self) else {
      return []
    }
    return View.lines(text)
  }

  func finish() { _ = try? Files.remove(taken) }
}
