/// The mounts of this process's namespace: /proc/self/mountinfo, proc(5).
package struct MountTable {
  package struct Entry: Sendable {
    package var path: String
    package var type: String
    /// The device, or what stands for one.
    package var source: String
    package var user: UInt32?
    package var group: UInt32?
    /// The mount's number, which stays while it is moved; another mount may get it afterwards.
    package var id: String
    /// `major:minor`; of FUSE the connection's number in /sys/fs/fuse/connections.
    package var device: String
    /// The file system itself takes no writes although it was mounted for them: the kernel turns it so after an error.
    package var hasFailed: Bool
  }

  package let entries: [Entry]

  package init() {
    self.init(text: (try? Files.read("/proc/self/mountinfo", limit: .max - 1)) ?? [])
  }

  /// The same of an open descriptor of that file, which takes no other one; nil: it can't be read.
  package init?(reading descriptor: borrowing Descriptor) {
    guard (try? descriptor.seek(to: 0)) != nil,
      let text = try? descriptor.readToEnd(limit: .max - 1, expecting: 65535)
    else { return nil }
    self.init(text: text)
    if entries.isEmpty { return nil }
  }

  init(text: [UInt8]) {
    entries = text.split(separator: UInt8(ascii: "\n")).compactMap { Entry(line: $0) }
  }

  /// The topmost mount at a path.
  package func entry(at path: String) -> Entry? {
    entries.last { $0.path == path }
  }

  /// Whether a mount is there still, wherever it was moved.
  package func contains(_ entry: Entry) -> Bool {
    entries.contains { $0.id == entry.id && $0.device == entry.device }
  }
}

extension MountTable.Entry {
  // Bytes: a table of a hundred mounts takes a millisecond as characters, and each command reads it.
  fileprivate init?(line: ArraySlice<UInt8>) {
    let fields = line.split(separator: UInt8(ascii: " "))
    guard fields.count > 8, let dash = fields.firstIndex(where: { $0.elementsEqual("-".utf8) }),
      fields.count > dash + 3
    else { return nil }
    path = fields[4].octalUnescaped
    type = String(decoding: fields[dash + 1], as: UTF8.self)
    id = String(decoding: fields[0], as: UTF8.self)
    device = String(decoding: fields[2], as: UTF8.self)
    source = fields[dash + 2].octalUnescaped
    let options = fields[dash + 3].split(separator: UInt8(ascii: ","))
    let ownOptions = fields[5].split(separator: UInt8(ascii: ","))
    let has = { (list: [ArraySlice<UInt8>], name: String) in list.contains { $0.elementsEqual(name.utf8) } }
    // `emergency_ro` since Linux 6.15; before, only the superblock became read-only.
    hasFailed = has(options, "emergency_ro") || has(ownOptions, "rw") && has(options, "ro")
    let number = { (name: String) in
      options.first { $0.starts(with: name.utf8) }
        .flatMap { UInt32(String(decoding: $0.dropFirst(name.utf8.count), as: UTF8.self)) }
    }
    user = number("user_id=")
    group = number("group_id=")
  }

  package func isKeyhole(of user: UInt32) -> Bool { type == "fuse.keyhole" && self.user == user }
}

extension ArraySlice<UInt8> {
  /// Blanks, tabs, line feeds and backslashes stand in octal.
  var octalUnescaped: String {
    guard contains(UInt8(ascii: "\\")) else { return String(decoding: self, as: UTF8.self) }
    var bytes: [UInt8] = []
    var rest = self
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"),
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      else {
        bytes.append(byte)
        continue
      }
      bytes.append(code)
      rest = rest.dropFirst(3)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
