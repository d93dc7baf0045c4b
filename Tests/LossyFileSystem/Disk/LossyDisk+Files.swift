import Glibc

extension LossyDisk {
  /// Makes a folder and those above it, durable.
  package mutating func makeFolder(_ path: String) {
    var folder = Self.root
    for part in path.split(separator: "/").map({ Array($0.utf8) }) {
      folder = find(part, in: folder) ?? make(part, in: folder, folderNode)
    }
    synchronizeAll()
  }

  /// Makes a file in a folder that is there, durable.
  package mutating func makeFile(_ path: String, _ bytes: [UInt8]) {
    var parts = path.split(separator: "/").map { Array($0.utf8) }
    guard let name = parts.popLast(), let folder = node(parts) else { return }
    var file = LossyFile()
    file.write(bytes.span, at: 0)
    var node = folderNode
    node.file = file
    node.mode = 0o600
    _ = make(name, in: folder, node)
    synchronizeAll()
  }

  /// The content of a file; nil: there is none.
  package func bytes(_ path: String) -> [UInt8]? {
    guard let file = node(path.split(separator: "/").map { Array($0.utf8) }).flatMap({ nodes[$0]?.file })
    else { return nil }
    return file.bytes(at: 0, count: file.size)
  }

  /// Writes all that is on the disk, as programs see it, into a real folder that is empty.
  package func materialize(at path: String) throws(LossyDiskError) {
    var written: [UInt64: String] = [:]
    try materialize(Self.root, at: path, &written)
  }

  private var folderNode: Node {
    Node(mode: 0o700, owner: geteuid(), group: getegid(), modified: .now)
  }

  private func node(_ parts: [Name]) -> UInt64? {
    parts.reduce(Self.root) { folder, part in folder.flatMap { find(part, in: $0) } }
  }

  private mutating func synchronizeAll() {
    for number in nodes.keys { synchronize(number) }
  }
}

/// A real file or folder that could not be made.
package struct LossyDiskError: Error {
  package let path: String
  package let errno: Int32
}

extension LossyDisk {
  private func materialize(
    _ number: UInt64, at path: String, _ written: inout [UInt64: String]
  ) throws(LossyDiskError) {
    guard let node = nodes[number] else { return }
    if let file = node.file {
      // Two names of one file stay that.
      if let other = written[number] { return try check(path) { unsafe Glibc.link(other, path) } }
      written[number] = path
      return try materialize(file, node, at: path)
    }
    for (name, child) in node.names {
      let childPath = path + "/" + String(decoding: name, as: UTF8.self)
      if nodes[child]?.file == nil { try check(childPath) { unsafe mkdir(childPath, 0o700) } }
      try materialize(child, at: childPath, &written)
    }
  }

  private func materialize(_ file: LossyFile, _ node: Node, at path: String) throws(LossyDiskError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, node.mode & 0o7777)
    try check(path) { descriptor }
    defer { close(descriptor) }
    let bytes = file.bytes(at: 0, count: file.size)
    try check(path) { unsafe write(descriptor, bytes, bytes.count) == bytes.count ? 0 : -1 }
    let time = timespec(tv_sec: node.modified.seconds, tv_nsec: node.modified.nanoseconds)
    try check(path) { unsafe futimens(descriptor, [time, time]) }
  }

  private func check(_ path: String, _ call: () -> Int32) throws(LossyDiskError) {
    guard call() < 0 else { return }
    throw LossyDiskError(path: path, errno: errno)
  }
}

extension LossyDisk.Moment {
  static var now: Self {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Self(seconds: time.tv_sec, nanoseconds: time.tv_nsec)
  }
}
