import Dispatch
import Fuse
import Synchronization

/// A lossy disk at a place in the file system, until it is closed.
///
/// This process answers the kernel, so it must not map files of the mount: a page fault would wait for itself.
package final class LossyMount: Sendable {
  package let path: String
  private let tree: LossyTree
  private let session: Session
  private let guardian: Guardian

  /// Mounts `disk` at an empty folder and returns when calls on it are answered.
  package init(_ disk: LossyDisk, at path: String, cuts: PowerCuts) throws {
    self.path = path
    tree = LossyTree(disk, cuts)
    session = try Session(tree, options: ["fsname=lossy", "subtype=keyhole-test", "nosuid", "nodev"])
    guardian = try Guardian(of: path)
    let isReady = DispatchSemaphore(value: 0)
    try session.mount(at: path) { isReady.signal() }
    let session = session
    DispatchQueue(label: "lossy").async { try? session.run(threads: 3) }
    isReady.wait()
  }

  deinit { close() }

  /// The disk at this moment.
  package var disk: LossyDisk { tree.state.withLock { $0.disk } }

  /// Every moment so far at which the power was cut.
  package var cuts: PowerCuts { tree.state.withLock { $0.cuts } }

  /// Unmounts, even while it is in use. Once is enough.
  package func close() {
    session.unmount()
    guardian.dismiss()
  }
}
