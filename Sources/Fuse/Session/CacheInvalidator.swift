import CFuse
public import Platform

/// Tells the kernel what it must no longer believe.
///
/// Never inside a request that has not been answered, ``invalidateAttributes(of:)`` aside: the kernel waits for locks that
/// the request's caller may hold, so both would wait without end. All methods return nil when done, ENOENT if the kernel knew nothing of the kind, ENOSYS if it is
/// too old, and another error when the mount is gone.
public struct CacheInvalidator: Sendable {
  let connection: Connection

  /// Drops a node's attributes, and leaves its content in the page cache.
  ///
  /// The kernel takes no lock of the file for it, so it may be called inside a request. A reply with attributes whose
  /// request is older is not cached. In libfuse: `fuse_lowlevel_notify_inval_inode` with a negative offset.
  @discardableResult
  public func invalidateAttributes(of node: NodeID) -> Errno? {
    // SAFETY: the connection keeps the session alive; so in all methods.
    unsafe tell { unsafe fuse_lowlevel_notify_inval_inode($0, node.rawValue, -1, 0) }
  }

  /// Drops a node's attributes, and its content from `offset` on in the page cache; a length of 0 goes to the end.
  ///
  /// Of a directory it drops the cached listing. In libfuse: `fuse_lowlevel_notify_inval_inode`.
  @discardableResult
  public func invalidateNode(_ node: NodeID, offset: Int = 0, length: Int = 0) -> Errno? {
    unsafe tell { unsafe fuse_lowlevel_notify_inval_inode($0, node.rawValue, offset, length) }
  }

  /// Drops a name, so that it is looked up again; also one that is remembered as absent.
  ///
  /// Mounts on it are detached. In libfuse: `fuse_lowlevel_notify_inval_entry`.
  @discardableResult
  public func invalidateEntry(_ name: Span<UInt8>, in parent: NodeID) -> Errno? {
    unsafe tell(name) { unsafe fuse_lowlevel_notify_inval_entry($0, parent.rawValue, $1, $2) }
  }

  /// Has a name looked up again at its next use, without dropping it.
  ///
  /// In libfuse: `fuse_lowlevel_notify_expire_entry`.
  @discardableResult
  public func expireEntry(_ name: Span<UInt8>, in parent: NodeID) -> Errno? {
    unsafe tell(name) {
      unsafe fuse_lowlevel_notify_expire_entry($0, parent.rawValue, $1, $2, FUSE_LL_EXPIRE_ONLY)
    }
  }

  /// Drops a name whose node was deleted: those who hold it open see it as unlinked, and watchers of the node hear.
  ///
  /// ENOTEMPTY for a directory that the kernel knows children of. In libfuse: `fuse_lowlevel_notify_delete`.
  @discardableResult
  public func deleteEntry(_ name: Span<UInt8>, of child: NodeID, in parent: NodeID) -> Errno? {
    unsafe tell(name) { unsafe fuse_lowlevel_notify_delete($0, parent.rawValue, child.rawValue, $1, $2) }
  }
}

extension CacheInvalidator {
  private static let mostPruned = 512

  /// Has the kernel forget nodes, with their names, attributes and pages, but for those that are in use: open, watched, a
  /// working directory, or a directory that it knows children of. A FORGET follows for each that it forgets.
  ///
  /// Nodes that the kernel does not know are left out. EINVAL: it is older than Linux 6.18. In linux/fuse.h:
  /// `FUSE_NOTIFY_PRUNE`.
  @discardableResult
  public func prune(_ nodes: [NodeID]) -> Errno? {
    guard let device = connection.device else { return .ENOTCONN }
    var rest = nodes[...]
    while !rest.isEmpty {
      let numbers = rest.prefix(Self.mostPruned).map(\.rawValue)
      rest = rest.dropFirst(Self.mostPruned)
      // SAFETY: the connection keeps the device open, and the array outlives the call.
      let written = unsafe numbers.withUnsafeBufferPointer { numbers in
        unsafe shim_notify_prune(device, numbers.baseAddress, UInt32(clamping: numbers.count))
      }
      if written < 0 { return .current }
    }
    return nil
  }
}

extension CacheInvalidator {
  private func tell(_ send: (OpaquePointer) -> Int32) -> Errno? {
    guard let session = unsafe connection.session else { return .ENOTCONN }
    let status = unsafe send(session)
    return status == 0 ? nil : Errno(rawValue: -status)
  }

  private func tell(
    _ name: Span<UInt8>, _ send: (OpaquePointer, UnsafePointer<CChar>, Int) -> Int32
  ) -> Errno? {
    let count = name.count
    // libfuse sends the zero byte after the name along, so it has to be there.
    return unsafe name.withTerminatedBytes { name in unsafe tell { unsafe send($0, name, count) } }
  }
}
