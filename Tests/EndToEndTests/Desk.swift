import Glibc
import Testing

/// A mount with files that are edited, and a secret to look for. The mount keeps no history, which would have more commits and
/// more copies of settings.
struct Desk {
  let keyhole: MountedKeyhole
  /// Long enough to make Emacs save by itself.
  let marker: String
  private let suites: FolderEvents

  init(_ keyhole: MountedKeyhole) throws {
    self.keyhole = keyhole
    var random = SystemRandomNumberGenerator()
    marker = "Marker" + String(UInt64.random(in: .max / 2 ... .max, using: &random), radix: 36) + "OfTheTest"
    for file in EditedFile.all {
      try keyhole.check("mkdir -p '\(file.folder)' && cat > '\(file.path)'", sending: file.before)
      guard file.isSecret else { continue }
      for (name, value) in Self.attributes {
        try System.setAttribute(keyhole / file.folder, "user.\(name)", value)
      }
    }
    suites = try FolderEvents(keyhole.world.config)
  }

  private static let attributes = [
    "comment": "a note", "keyhole.label": "My label", "keyhole.created": "2020-01-02T03:04:05Z",
    "custom": "kept",
  ]

  /// Looks at everything before and after `body`, which saves a file that many times: only its value and the time
  /// of its last change may differ, and each save is one commit.
  func watch(
    _ file: EditedFile, saves: Int, leaving names: [String] = [], _ who: String,
    sourceLocation: SourceLocation = #_sourceLocation, body: () throws -> Void
  ) throws {
    let what: Comment = "\(who): \(file.path)"
    let before = try picture(of: file)
    _ = suites.replacements(of: "app.plist")
    try body()
    let read = try System.read(keyhole / file.path)
    #expect(read == file.after(marker, 2), what, sourceLocation: sourceLocation)
    var after = try picture(of: file)
    let commits = file.isSecret ? after.revision - before.revision : suites.replacements(of: "app.plist")
    #expect(commits == saves, what, sourceLocation: sourceLocation)
    #expect(after.modified > before.modified, what, sourceLocation: sourceLocation)
    (after.modified, after.revision) = (before.modified, before.revision)
    after.names.subtract(names)
    #expect(after == before, what, sourceLocation: sourceLocation)
    for name in names { try? System.unlink(keyhole / "\(file.folder)/\(name)") }
  }

  /// The state that has to stay, with the time and the number of the last change.
  struct Picture: Equatable {
    var names: Set<String>
    var attributes: [String: String]
    var stored: String
    var modified: Double
    var revision: Int
  }

  private func picture(of file: EditedFile) throws -> Picture {
    let path = keyhole / file.path
    var attributes: [String: String] = [:]
    for name in try System.attributeNames(path) where name != "user.keyhole.modified" {
      attributes[name] = try System.attribute(path, name)
    }
    let time = try System.status(path).st_mtim
    return Picture(
      names: Set(try System.names(keyhole / file.folder)), attributes: attributes, stored: try stored(),
      modified: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9,
      revision: try revision())
  }

  /// The names of all that is stored: keys of suites, and items.
  private func stored() throws -> String {
    let output = try keyhole.world.sh(
      """
      for s in $(keyhole ls defaults); do keyhole ls "defaults/$s"; done
      sqlite3 -readonly "$DATA/keyhole/vault.db" 'select hex(uuid) from item order by 1'
      """)
    try #require(output.isSuccess(), "\(output)")
    return output.text
  }

  private func revision() throws -> Int {
    let output = try keyhole.world.sh(
      "sqlite3 -readonly \"$DATA/keyhole/vault.db\" 'select max(revision) from item'")
    return Int(output.text.dropLast()) ?? -1
  }

  /// Nowhere on a disk, as far as editors write there, is what was typed into secrets.
  func search(_ who: String) throws {
    let world = keyhole.world
    // The settings have it, and so the search works.
    let script = """
      find '\(world.root)' -path "$MOUNT" -prune -o -type f -exec grep -laF \(marker) {} +
      find /tmp /var/tmp -xdev -maxdepth 3 -path '\(world.root)' -prune -o -type f -newer '\(world.log)' -exec grep -laF \(marker) {} + 2> /dev/null
      """
    let found = try world.sh(script).lines
    #expect(found == ["\(world.config)/app.plist"], "\(who)")
  }
}

extension Output {
  /// Ended well, and said nothing on standard error.
  var isSilentSuccess: Bool { status == 0 && error.isEmpty }
}
