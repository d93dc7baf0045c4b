/// A file that only takes room: given up when the disk is full, so that deleting still works.
package struct ReserveFile: Sendable {
  /// The least that is worth keeping, in bytes.
  package static let leastSize = 128 * 1024
  /// A smaller part is no use.
  private static let leastPart = 16 * 1024

  /// Where the file is or is to be.
  package let path: String

  /// Names the file; nothing is created.
  package init(_ path: String) {
    self.path = path
  }

  /// In bytes; nil: there is none.
  package var size: Int? {
    guard let status = try? Files.status(path, followingLinks: false), status.isRegular else { return nil }
    return Int(clamping: status.size)
  }

  /// Whether the disk has room for the least that is worth keeping, as `restore` counts it: then the next use makes the file.
  package var hasRoom: Bool { availableRoom.map { $0 / 4 >= Self.leastSize } ?? true }

  /// Makes the file of `wanted` bytes, or lets it grow to that: half as much, and so on, where the disk has not room
  /// for it four times over.
  ///
  /// - Returns: its size in bytes; 0: there is no room for any.
  @discardableResult package func restore(_ wanted: Int) -> Int {
    let present = size ?? 0
    guard present < wanted, let room = availableRoom else { return present }
    var size = wanted
    while size > room / 4, size >= Self.leastSize { size /= 2 }
    guard size >= Self.leastSize, size > present else { return present }
    return allocate(size) ? size : present
  }

  /// True: there is room now that was not there before.
  @discardableResult package func giveUp() -> Bool {
    (try? Files.remove(path)) == true
  }

  /// Makes the file half as large, but for `rest` bytes, which stay; without a rest the file goes in the end.
  ///
  /// - Returns: there is room now that was not there before.
  package func giveUpHalf(rest: Int) -> Bool {
    guard let size, size > rest else { return false }
    let half = max(rest, size / 2)
    guard half >= Self.leastPart else { return rest == 0 && giveUp() }
    guard let file = try? Descriptor(path, [.writing, .noFollow, .nonBlocking]) else { return false }
    return (try? file.truncate(to: Int64(half))) != nil
  }

  private func allocate(_ size: Int) -> Bool {
    guard let file = try? Descriptor(path, [.writing, .create, .noFollow, .nonBlocking]) else { return false }
    guard let status = try? file.status, status.isRegular, status.owner == User.effective,
      (try? file.allocate(Int64(size))) != nil
    else {
      // An empty one would be taken for none; one of another kind is not ours.
      if self.size == 0 { giveUp() }
      return false
    }
    return true
  }

  /// In bytes; nil: it is not known.
  private var availableRoom: Int? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    guard let volume = try? Volume(at: String(path[..<slash])) else { return nil }
    return Int(clamping: volume.availableBytes)
  }
}
