import Foundation
import Glibc
import Testing

/// Section 3: each type as text, both ways.
@Suite(.timeLimit(.minutes(1))) struct SettingValueTests {
  @Test func keyCreatedEmptyTakesItsTypeFromItsFirstContent() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/s; cd defaults/s; touch k l; stat -c %s k; getfattr --only-values -n user.keyhole.type k; echo; cat k",
        prints: "0\ndata\n")
      try keyhole.remount()
      try keyhole.check(
        "cd defaults/s; stat -c %s k; echo 42 > k; echo text >> l; for i in k l; do getfattr --only-values -n user.keyhole.type $i; echo; cat $i; done",
        prints: "0\ninteger\n42\nstring\ntext\n")
    }
  }

  @Test func typeSetOnAKeyCreatedEmptySaysHowItsFirstContentIsRead() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      // The way of tar: made, given its attributes by name, and only then opened.
      for (type, content, shown) in [
        ("string", "42", "42\n"), ("integer", "42", "42\n"), ("real", "42", "42.0\n"),
        ("data", "true\n", "true\n"),
        ("bool", "1", "true\n"), ("array", "[]", "[]\n"),
        ("date", "2026-11-21T07:53:00Z", "2026-11-21T07:53:00Z\n"),
      ] {
        let path = keyhole / "defaults/s/\(type)"
        try System.mknod(path, kind: S_IFREG)
        #expect(failure { try System.setAttribute(path, "user.keyhole.type", type) } == nil, "\(type)")
        try System.write(path, content)
        #expect(try System.attribute(path, "user.keyhole.type") == type)
        let text = try System.text(path)
        #expect(text == shown, "\(type)")
      }
    }
  }

  @Test func typeSetBeforeTheCommitSaysHowContentIsRead() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      for (type, content, shown) in [
        ("string", "42", "42\n"), ("real", "42", "42.0\n"), ("data", "true\n", "true\n"),
        ("bool", "1", "true\n"),
      ] {
        for order in ["before", "after"] {
          let path = keyhole / "defaults/s/\(type)-\(order)"
          let file = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL)
          if order == "before" { try System.setAttribute(file, "user.keyhole.type", type) }
          try file.write(content)
          if order == "after" { try System.setAttribute(file, "user.keyhole.type", type) }
          try file.close()
          #expect(try System.text(path) == shown, "\(type) \(order)")
          #expect(try System.attribute(path, "user.keyhole.type") == type, "\(type) \(order)")
        }
      }
      let file = try OpenFile(keyhole / "defaults/s/wrong", O_WRONLY | O_CREAT | O_EXCL)
      try file.write("text")
      let errors = [
        failure { try System.setAttribute(file, "user.keyhole.type", "integer") },
        failure { try file.close() },
      ]
      #expect(errors.contains(.invalid))
    }
  }

  @Test func layoutIsThatOfJQ() async throws {
    guard System.exists("/usr/bin/jq") else { return }
    try await withKeyhole { keyhole in
      let json =
        #"{"z":[],"a":{"é":[1,-2,{"x":"q\"\\\b\f\n\r\t\u0001\u001f/ü🔑"},[[]]],"B":true,"b":false,"":{}},"ab":"","a ":"\u2028","10":1,"9":2}"#
      try keyhole.check("mkdir defaults/s")
      try System.write(keyhole / "defaults/s/k", json)
      let expected = try keyhole.world.run(
        ["/usr/bin/jq", "-S", "--indent", "2", "."], sending: Array(json.utf8))
      #expect(try System.text(keyhole / "defaults/s/k") == expected.text)
    }
  }

}

extension MountedKeyhole {
  /// A new key with a type and a content, as tar makes it.
  func create(_ path: String, _ type: String, _ content: String) throws {
    let file = try OpenFile(self / "defaults/\(path)", O_WRONLY | O_CREAT | O_EXCL)
    try System.setAttribute(file, "user.keyhole.type", type)
    try file.write(content)
    try file.close()
  }
}
