import Cluster
import Foundation

/// A folder that goes with its last user.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "keyhole-cluster-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The files of a device.
  func files(_ name: String) -> DeviceFiles {
    DeviceFiles(
      device: "\(path)/\(name).device", seen: "\(path)/\(name).seen", offline: "\(path)/\(name).offline")
  }

  func copy(_ name: String, to other: String) throws {
    try FileManager.default.copyItem(atPath: path + "/" + name, toPath: path + "/" + other)
  }
}
