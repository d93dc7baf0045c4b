import Platform
import SecretMemory
import Testing

@testable import ViewFormats

/// The table of FORMATS.md, a row each: what each dialect reads, nil where it refuses.
@Suite struct EnvDialectTests {
  private static func value(_ text: String, _ dialect: EnvDialect) -> String? {
    guard let document = try? Grammar(format: .env, dialect: dialect).parse(text),
      document.entries.count == 1,
      let entry = document.entries.first, let value = try? document.value(of: entry)
    else { return nil }
    return String(decoding: value.unprotected, as: UTF8.self)
  }

  struct Row: Sendable {
    let text: String
    var sh: String?
    var docker: String?
    var compose: String?
    var node: String?
    var python: String?
    var systemd: String?
    var portable: String?
  }

  private static let rows = [
    Row(
      text: "A=x", sh: "x", docker: "x", compose: "x", node: "x", python: "x", systemd: "x", portable: "x"),
    Row(
      text: "A='x$y'", sh: "x$y", docker: "'x$y'", compose: "x$y", node: "x$y", python: "x$y", systemd: "x$y",
      portable: "x$y"),
    Row(text: "A=\"x$y\"", docker: "\"x$y\"", node: "x$y", python: "x$y", systemd: "x$y"),
    Row(text: "A=x$y", docker: "x$y", node: "x$y", python: "x$y", systemd: "x$y"),
    Row(text: "A='${y}'", sh: "${y}", docker: "'${y}'", compose: "${y}", node: "${y}", systemd: "${y}"),
    Row(
      text: "A=\"a\\nb\"", sh: "a\\nb", docker: "\"a\\nb\"", compose: "a\nb", node: "a\nb", python: "a\nb",
      systemd: "a\\nb"),
    Row(
      text: "A='a\nb'", sh: "a\nb", compose: "a\nb", node: "a\nb", python: "a\nb", systemd: "a\nb",
      portable: "a\nb"),
    Row(text: "A='it\\'s'", docker: "'it\\'s'", compose: "it's", python: "it's"),
    Row(text: "A='it'\\''s'", sh: "it's", docker: "'it'\\''s'"),
    Row(text: "A=a # b", sh: "a", docker: "a # b", compose: "a", node: "a", python: "a", systemd: "a # b"),
    Row(text: "A=a#b", sh: "a#b", docker: "a#b", compose: "a#b", node: "a", python: "a#b", systemd: "a#b"),
    Row(text: "A=a b", docker: "a b", compose: "a b", node: "a b", python: "a b", systemd: "a b"),
    Row(
      text: "A=a\\b", sh: "ab", docker: "a\\b", compose: "a\\b", node: "a\\b", python: "a\\b", systemd: "ab"),
    Row(text: "export A=x", sh: "x", compose: "x", node: "x", python: "x"),
    Row(text: "A=~/x", docker: "~/x", compose: "~/x", node: "~/x", python: "~/x", systemd: "~/x"),
    Row(
      text: "A=\"x y\"", sh: "x y", docker: "\"x y\"", compose: "x y", node: "x y", python: "x y",
      systemd: "x y",
      portable: "x y"),
    Row(text: "A=`x`", docker: "`x`", compose: "`x`", node: "x", python: "`x`", systemd: "`x`"),
    Row(text: "A='a\\'", sh: "a\\", docker: "'a\\'", systemd: "a\\"),
    Row(text: "A = x", compose: "x", node: "x", python: "x", systemd: "x"),
  ]

  @Test(arguments: rows) func aDialectReadsWhatItsProgramReads(row: Row) {
    #expect(Self.value(row.text, .sh) == row.sh)
    #expect(Self.value(row.text, .docker) == row.docker)
    #expect(Self.value(row.text, .compose) == row.compose)
    #expect(Self.value(row.text, .node) == row.node)
    #expect(Self.value(row.text, .python) == row.python)
    #expect(Self.value(row.text, .systemd) == row.systemd)
    #expect(Self.value(row.text, .portable) == row.portable)
  }

  @Test func aRefusalNamesTheLineAndTheDialect() {
    #expect {
      _ = try Grammar(format: .env).parse("# a\nA=1\nB=x # y\n")
    } throws: { error in
      guard let error = error as? ViewError else { return false }
      return error.errno == .EINVAL && error.line == 3 && error.message.contains("systemd")
        && error.entry == ["B"]
    }
    #expect {
      _ = try Grammar(format: .env, dialect: .sh).parse("A=1\nB=\"$(id)\"\n")
    } throws: { ($0 as? ViewError)?.line == 2 }
    #expect {
      _ = try Grammar(format: .env, dialect: .compose).parse("A=1\nA=2\n")
    } throws: { ($0 as? ViewError)?.line == 2 && "\($0)".contains("line 1") }
  }

  /// The rule of the table: bare, else between single quotes, else refused.
  @Test func portableIsBareElseSingleQuotedElseRefused() throws {
    for (value, text) in [
      ("a/b:c@d", "K0=a/b:c@d\n"), ("a b", "K0='a b'\n"), ("$x", "K0='$x'\n"), ("", "K0=\n"),
    ] {
      let values = Values(values: [Array(value.utf8)])
      let file = try ViewFormat.env.template([0]).render(values.lender)
      #expect(String(decoding: file.unprotected, as: UTF8.self) == text)
    }
    for value in ["it's", "a\\", "a\\\\b", "${x}", "a\rb", "\u{1}"] {
      let values = Values(values: [Array(value.utf8)])
      let template = try ViewFormat.env.template([0])
      #expect {
        _ = try template.render(values.lender)
      } throws: { ($0 as? ViewError)?.errno == .EILSEQ && ($0 as? ViewError)?.entry == ["K0"] }
      #expect(template.faults(values.lender).map(\.errno) == [.EILSEQ])
    }
  }
}
