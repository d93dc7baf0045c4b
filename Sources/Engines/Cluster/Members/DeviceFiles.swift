import Model
import Platform

/// The files of a device: its keys, what it has seen, and the copy of the keychain. They are 0600, and whole or not there.
package struct DeviceFiles: Sendable {
  /// The file of the device's keys.
  package let device: String
  /// The file of what was seen.
  package let seen: String
  /// The file of the copy of the keychain, where the device keeps one.
  package let offline: String

  package init(device: String, seen: String, offline: String) {
    (self.device, self.seen, self.offline) = (device, seen, offline)
  }

  /// In bytes: what was seen grows with the number of suites.
  private static let largest = 64 << 20

  /// nil: there is no such file. - Throws: `accessDenied` where others can read it or it is not the user's; `system`.
  static func read(_ path: String) throws(StoreError) -> [UInt8]? {
    do throws(Errno) {
      let file = try Descriptor(path, [.reading, .noFollow, .nonBlocking])
      let status = try file.status
      guard status.isRegular, status.owner == User.effective, !status.isShared else {
        throw .EACCES
      }
      return try file.readToEnd(limit: largest)
    } catch .ENOENT {
      return nil
    } catch .EACCES, .ELOOP {
      throw .accessDenied(reason: "\(path) has to be a file of yours that no other user can read (0600)")
    } catch {
      throw StoreError(error, "open \(path)")
    }
  }

  /// Removes a file, if it is there.
  static func remove(_ path: String) { _ = try? Files.remove(path) }

  /// Replaces a file in one step; with `durably` it is on the disk when this returns.
  static func replace(_ path: String, with bytes: [UInt8], durably: Bool) throws(StoreError) {
    let temporary = "\(path).\(CurrentProcess.number).new"
    do throws(Errno) {
      _ = try Files.remove(temporary)
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes)
      if durably { try file.synchronize() }
      try Files.rename(temporary, to: path)
      if durably { try Files.synchronizeFolder(Files.folder(of: path)) }
    } catch {
      _ = try? Files.remove(temporary)
      throw StoreError(error, "write \(path)")
    }
  }
}
