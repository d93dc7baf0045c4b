import Testing

/// A value that a tool is tried on: of each kind that a tool might treat in its own way.
struct ToolSubject: Sendable {
  let name: String
  /// Its folder in the mount, and the file's name there.
  let folder: String
  let file: String
  let type: String?
  let old: String
  let new: String
  /// The change from `old` to `new`, as sed and Perl know it.
  let edit: String

  static let all = [
    setting("string", "string", "one\ntwo\nthree\n", "one\nTWO\nthree\n", "s/two/TWO/"),
    setting("integer", "integer", "42\n", "43\n", "s/42/43/"),
    setting(
      "dictionary", "dict", "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    \"ü\"\n  ]\n}\n",
      "{\n  \"a\": 2,\n  \"b\": [\n    true,\n    \"ü\"\n  ]\n}\n", "s/: 1/: 2/"),
    secret("PEM", pem("AAAAB3NzaC1yc2E"), pem("BBBBB3NzaC1yc2E"), "s/AAAAB/BBBBB/"),
    secret("binary", "\u{0}one\u{0}\u{1F}\ntwo\u{7F}", "\u{0}1ne\u{0}\u{1F}\ntwo\u{7F}", "s/one/1ne/"),
  ]

  private static func setting(
    _ name: String, _ type: String, _ old: String, _ new: String, _ edit: String
  ) -> ToolSubject {
    ToolSubject(
      name: name, folder: "defaults/app", file: name, type: type, old: old, new: new, edit: edit)
  }

  private static func secret(_ name: String, _ old: String, _ new: String, _ edit: String) -> ToolSubject {
    ToolSubject(
      name: name, folder: "keychain/generic/service/\(name)", file: "value", type: nil, old: old, new: new,
      edit: edit)
  }

  private static func pem(_ line: String) -> String {
    "-----BEGIN PRIVATE KEY-----\n\(line)\n-----END PRIVATE KEY-----\n"
  }
}

extension ToolSubject {
  /// Makes the value afresh, with attributes, and `old` and `new` outside of the mount.
  func prepare(_ keyhole: MountedKeyhole) throws {
    let outside = keyhole.world.outside
    try System.write(outside + "/old", old)
    try System.write(outside + "/new", new)
    try keyhole.check("mkdir -p \(folder); printf %s untouched > \(folder)/\(isSecret ? ".other" : "other")")
    try reset(keyhole)
    guard isSecret else { return }
    try keyhole.check(
      """
      setfattr -n user.comment -v note \(folder); setfattr -n user.own -v x \(folder)
      setfattr -n user.keyhole.label -v Label \(folder); setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z \(folder)
      """)
  }

  /// Puts the old value back.
  func reset(_ keyhole: MountedKeyhole) throws {
    try System.write(keyhole / path, old)
  }

  var path: String { "\(folder)/\(file)" }
  var isSecret: Bool { type == nil }

  /// Everything but the value and its time: type or attributes, the names, and what the stores' folders hold.
  func picture(_ keyhole: MountedKeyhole) throws -> String {
    let script = """
      # A suite's last version is beside it until the new one is on the disk.
      cd \(folder); sync "$F"; getfattr -d "$F" | grep -v 'keyhole.modified='; ls -A
      cat "$CONFIG"/app.plist 2>/dev/null | grep -o '<key>.*</key>' || true
      find "$CONFIG" "$DATA" "$XDG_STATE_HOME" -type f | sed "s|$OUT||" | sort
      """
    let output = try keyhole.sh("F=\(file); \(script)")
    return output.text + output.error
  }
}
