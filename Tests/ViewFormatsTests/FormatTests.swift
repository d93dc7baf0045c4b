import Platform
import SecretMemory
import Testing

@testable import ViewFormats

@Suite struct FormatTests {
  private func texts(_ format: ViewFormat, _ text: String) throws -> [String] {
    try Grammar(format: format).parse(text).texts
  }

  @Test func jsonHasItsStringsAndNumbers() throws {
    #expect(
      try texts(.json, #"{"a": {"b": "x\u00e9\n"}, "c": [1.50, true, null, "y"]}"#) == [
        "a b -> xé\n", "c 0 -> 1.50", "c 3 -> y",
      ])
  }

  @Test func iniNestsAndLowersKeys() throws {
    #expect(
      try texts(.ini, "[default]\nAWS_Key = a = b\ns3 =\n  max = 20\n# c\n  size=8\nlast =\n") == [
        "default aws_key -> a = b", "default s3 max -> 20", "default s3 size -> 8", "default last -> ",
      ])
  }

  @Test func netrcIsNamedByMachineAndLogin() throws {
    #expect(
      try texts(
        .netrc, "machine h password p login u account a\nmacdef m\nmachine x password y\n\ndefault password d"
      ) == [
        "h u password -> p", "h u account -> a", "default password -> d",
      ])
  }

  @Test func npmrcHasQuotesAndEscapes() throws {
    #expect(
      try texts(.npmrc, "//r/:_authToken=a\\;b\nk = \"x\\ny\"\nca[]=1\nca[]=2\n[s]\nv='\\${X}'\nflag\n") == [
        "//r/:_authToken -> a;b", "k -> x\ny", "ca[] -> 1", "ca[] 2 -> 2", "s v -> ${X}",
      ])
  }

  @Test func pgpassIsNamedByItsFields() throws {
    #expect(
      try texts(.pgpass, "# c\nh\\:1:5432:*:u:p\\:\\\\q\n") == ["h:1 5432 * u -> p:\\q"])
  }

  @Test func dockerHasPasswordsAndTokens() throws {
    // u:p
    let text =
      #"{"auths": {"h": {"auth": "dTpw", "identitytoken": "t"}}, "credsStore": "s", "HttpHeaders": {"X": "y"}}"#
    #expect(
      try texts(.dockerConfig, text) == [
        "auths h auth u -> p", "auths h identitytoken -> t", "HttpHeaders X -> y",
      ])
    let document = try Grammar(format: .dockerConfig).parse(text)
    let template = try document.numberedTemplate()
    let values = Values(values: [Array("new".utf8), [], []])
    let file = String(decoding: try template.render(values.lender).unprotected, as: UTF8.self)
    // u:new
    #expect(file.contains(#""auth": "dTpuZXc=", "identitytoken": """#))
  }

  struct Fault: Sendable {
    let format: ViewFormat
    let text: String
    let line: Int
  }

  @Test(arguments: [
    Fault(format: .json, text: "{\n\"a\": 1,\n\"a\": 2}", line: 3),
    Fault(format: .json, text: "{\"a\": \"\\ud800\"}", line: 1),
    Fault(format: .json, text: "\n\n{\"a\": 01}", line: 3),
    Fault(format: .json, text: "{\"a\": 1} x", line: 1),
    Fault(format: .json, text: "1", line: 1),
    Fault(format: .ini, text: "a = 1\n", line: 1),
    Fault(format: .ini, text: "[a]\nk = v # w\n", line: 2),
    Fault(format: .ini, text: "[a]\nk = v\n  more\n", line: 3),
    Fault(format: .ini, text: "[a]\nk = 1\nK = 2\n", line: 3),
    Fault(format: .netrc, text: "machine h password \"p q\"", line: 1),
    Fault(format: .netrc, text: "machine h\npassword", line: 2),
    Fault(format: .netrc, text: "machine h login u password p\nmachine h login u password q", line: 2),
    Fault(format: .npmrc, text: "a=1\nb=${TOKEN}\n", line: 2),
    Fault(format: .npmrc, text: "a='1'\n", line: 1),
    Fault(format: .npmrc, text: "a=1 ; c\n", line: 1),
    Fault(format: .pgpass, text: "# a\nh:1:d:u\n", line: 2),
    Fault(format: .pgpass, text: "h:1:d:u:p:q\n", line: 1),
    Fault(format: .dockerConfig, text: "{\"auths\": {\n\"h\": {\"auth\": \"!!!!\"}}}", line: 2),
  ]) func whatAProgramRefusesIsEINVALWithTheLine(fault: Fault) {
    #expect {
      _ = try Grammar(format: fault.format).parse(fault.text)
    } throws: { error in
      (error as? ViewError)?.errno == .EINVAL && (error as? ViewError)?.line == fault.line
    }
  }

  @Test(arguments: ViewFormat.writable.filter { $0 != .pgpass }) func notUTF8IsEILSEQ(format: ViewFormat) {
    let text = Array("a\n".utf8) + [0xFF, 0x0A]
    #expect {
      _ = try Grammar(format: format).parse(text)
    } throws: { ($0 as? ViewError)?.errno == .EILSEQ && ($0 as? ViewError)?.line == 2 }
  }

  @Test func bytesStayInFormatsThatHaveThem() throws {
    let pgpass = try Grammar(format: .pgpass).parse(Array("h:1:d:u:".utf8) + [0xFF])
    #expect(pgpass.values.values == [[0xFF]])
    let sh = try Grammar(format: .env, dialect: .sh).parse(Array("A='".utf8) + [0xFF] + Array("'\n".utf8))
    #expect(sh.values.values == [[0xFF]])
  }

  @Test func aTemplateIsNeverWritten() {
    #expect { _ = try Grammar(format: .template).parse("x") } throws: { ($0 as? ViewError)?.errno == .EROFS }
  }

  @Test(arguments: ViewFormat.writable) func aNewFileRefusesNamesThatItCantHave(format: ViewFormat) {
    for name in [[], ["a\nb"], ["a", "b\n", "c", "d", "e"]] where !(format == .json && !name.isEmpty) {
      #expect {
        _ = try ViewTemplate(format, entries: [(name, "keychain/generic/a/b")])
      } throws: { ($0 as? ViewError)?.errno == .EINVAL }
    }
  }

  @Test func aNewJSONFileIsLaidOut() throws {
    let template = try ViewTemplate(
      .json,
      entries: [
        (["a", "b\""], Reference.path(0)), (["c"], Reference.path(1)), (["a", "d"], Reference.path(1)),
      ])
    let file = try template.render(Values(values: [Array("x".utf8), Array("y".utf8)]).lender)
    #expect(
      String(decoding: file.unprotected, as: UTF8.self)
        == "{\n  \"a\": {\n    \"b\\\"\": \"x\",\n    \"d\": \"y\"\n  },\n  \"c\": \"y\"\n}\n")
  }

  @Test func theLenderDecidesTheError() throws {
    let template = try ViewFormat.env.template([0, 1])
    #expect {
      _ = try template.render { (slot, body) throws(ViewError) in
        if slot.reference == Reference.path(1) { throw ViewError(.ENOKEY, entry: slot.name, "it is locked") }
        let value: [UInt8] = [0x61]
        try body(value.span)
      }
    } throws: { ($0 as? ViewError)?.errno == .ENOKEY && ($0 as? ViewError)?.entry == ["K1"] }
  }
}
