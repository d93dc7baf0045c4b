import Control
import ImportExport
import KeychainSelection
import Platform

/// A setting as the file of a running mount, which has its suite in memory.
///
/// A command that opens the suite itself searches the whole property list for one key, and for a change parses all of it.
package struct MountedSetting {
  private let file: String
  /// Whether `write` stores a setting: the name is none of an editor's temporary files, and no import that was cut short is to be
  /// taken back first.
  package let isWritable: Bool

  /// nil: it is no full path of a setting, or no mount that can answer shows the settings of this environment.
  ///
  /// - Throws: `Failure` where there is no home.
  package init?(_ text: String) throws {
    guard Self.isPath(text) else { return nil }
    let path = TreePath(text)
    let places = try StoragePaths.current()
    guard let mount = MountRegistration.newest(in: places.runtime), !mount.isStopped,
      mount.settings == places.configuration
    else { return nil }
    file = mount.path + "/" + path.string
    isWritable = path.storedName == nil && !ImportRecovery.isNeeded(state: places.state)
  }

  /// Whether a word of the command line is the path of a setting wherever the command runs: then no secret is opened for it.
  package static func isPath(_ text: String) -> Bool {
    let path = TreePath(text)
    return PathLocation.isFull(text) && path.settingKey != nil && !path.components.contains("..")
  }

  /// The content of the file. A mount that does not answer within two seconds is left alone.
  ///
  /// nil: it can't be read there; what opens the suite itself finds the reason.
  package func read() -> [UInt8]? {
    let file = file
    return Background.result(within: .seconds(2)) { Self.content(of: file) } ?? nil
  }

  /// Replaces the content of the file, if there is one. False: it is not known to be stored, and what opens the suite itself
  /// stores it or finds the reason. A mount that does not answer within two seconds is left alone.
  package func write(_ content: [UInt8]) -> Bool {
    let file = file
    return Background.result(within: .seconds(2)) { Self.store(content, in: file) } ?? false
  }

  private static func store(_ content: [UInt8], in path: String) -> Bool {
    do throws(Errno) {
      try MountedFile.write(content.span, to: path, [.nonBlocking])
      return true
    } catch {
      return false
    }
  }

  private static func content(of path: String) -> [UInt8]? {
    // Where the mount has just ended, another file may have its path.
    guard (try? Files.fileSystem(of: path)) == Files.fuse, let file = try? Descriptor(path, [.noFollow]),
      let status = try? file.status, status.isRegular,
      let content = try? file.read(Int(clamping: status.size), at: 0),
      // The value may have become a longer one between the two calls.
      (try? file.read(1, at: Int64(content.count)))?.isEmpty == true
    else { return nil }
    return content
  }
}
