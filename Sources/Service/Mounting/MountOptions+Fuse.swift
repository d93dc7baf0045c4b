import Model
import Platform

extension MountOptions {
  /// fusermount3 refuses these in words of its own, without saying where the line belongs.
  ///
  /// - Throws: `Failure`
  package func checkFuseConfiguration() throws {
    guard allowsOthers || allowsRoot, User.real != 0 else { return }
    let lines = readFile("/etc/fuse.conf").split(separator: "\n")
    guard !lines.contains(where: { $0.split(separator: " ").first == "user_allow_other" }) else { return }
    throw Failure(
      nil,
      "`allow_other` and `allow_root` need the line `user_allow_other` in /etc/fuse.conf, which root adds")
  }
}
