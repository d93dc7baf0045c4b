import Platform
import SecretMemory
import Testing

@testable import ViewFormats

@Suite(.timeLimit(.minutes(2))) struct RoundTripTests {
  private static let count = 1500

  @Test(arguments: Grammar.all) func whatIsRenderedIsReadBack(grammar: Grammar) throws {
    var secrets = RandomSecrets(seed: 1)
    let values = Values(values: (0..<Self.count).map { _ in secrets.next() })
    let (file, numbers) = try grammar.file(values)
    #expect(numbers.count > Self.count / 5, "hardly a value is carried")
    let document = try grammar.parse(file)
    #expect(document.entries.map(\.name) == numbers.map { grammar.format.name($0) })
    #expect(document.values.values == numbers.map { values.values[$0] })
    #expect(try grammar.format.template(numbers, grammar.dialect).length(values.lender) == file.count)
  }

  /// Text that a person writes, spelled in each way that a reader knows: the same values give the same bytes again.
  @Test(arguments: Grammar.all) func unchangedValuesGiveTheSameBytes(grammar: Grammar) throws {
    var mutator = TextMutator(seed: 2)
    let samples = Samples.files(grammar)
    try #require(!samples.isEmpty)
    for sample in samples { #expect(throws: Never.self) { try grammar.parse(sample) } }
    var parsed = 0
    for _ in 0..<Self.count {
      let text = mutator.mutated(samples)
      guard let document = try? grammar.parse(text) else { continue }
      parsed += 1
      let template = try document.numberedTemplate()
      let rendered = try template.render(document.values.lender).unprotected
      #expect(rendered == text, "\(String(decoding: text, as: UTF8.self).debugDescription)")
      let stored = try ViewTemplate(encoded: template.encoded())
      #expect(stored.isSame(as: template))
    }
    #expect(parsed > Self.count / 20, "hardly a mutation parses")
  }

  /// Other values in the places of the old ones are read back too, whatever the spelling was.
  @Test(arguments: Grammar.all) func changedValuesAreReadBack(grammar: Grammar) throws {
    var mutator = TextMutator(seed: 3)
    var secrets = RandomSecrets(seed: 4)
    let samples = Samples.files(grammar)
    for _ in 0..<300 {
      guard let document = try? grammar.parse(mutator.mutated(samples)) else { continue }
      let template = try document.numberedTemplate()
      let values = Values(values: document.entries.map { _ in secrets.next() })
      guard let rendered = try? template.render(values.lender) else { continue }
      let text = rendered.unprotected
      let again = try grammar.parse(text)
      #expect(again.entries.map(\.name) == document.entries.map(\.name))
      #expect(again.values.values == values.values)
    }
  }

  @Test func aMillionBytesAreOneView() throws {
    for grammar in [Grammar(format: .env), Grammar(format: .json)] {
      let values = Values(values: [[UInt8](repeating: UInt8(ascii: "x"), count: 1_000_000)])
      let (file, numbers) = try grammar.file(values)
      #expect(numbers == [0], "\(grammar)")
      #expect(try grammar.parse(file).values.values == values.values, "\(grammar)")
    }
  }

  @Test func beyondTheLimitsIsEFBIG() throws {
    let values = Values(values: [[UInt8](repeating: UInt8(ascii: "x"), count: ViewLimits.bytes)])
    let template = try ViewFormat.json.template([0])
    #expect(throws: SecretWriter.tooLong(ViewLimits.bytes)) { _ = try template.render(values.lender) }
    #expect(throws: SecretWriter.tooLong(ViewLimits.bytes)) { _ = try template.length(values.lender) }
    #expect(throws: SecretWriter.tooLong(ViewLimits.bytes)) {
      _ = try Grammar(format: .env).parse([UInt8](repeating: 0x0A, count: ViewLimits.bytes + 1))
    }
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: ViewLimits.depth + 1)
    #expect { _ = try Grammar(format: .json).parse(deep) } throws: { ($0 as? ViewError)?.errno == .EFBIG }
  }
}

/// Files as people write them.
enum Samples {
  static func files(_ grammar: Grammar) -> [[UInt8]] {
    texts(grammar).map { Array($0.utf8) }
  }

  private static func texts(_ grammar: Grammar) -> [String] {
    switch grammar.format {
    case .env: env(grammar.dialect)
    case .json:
      [
        #"{"a": "x\u00e9\ud83d\ude00\/\n", "b": [1, -2.50e+3, true, null, {"c": "", "d": []}], "e": {}}"#
          + "\n",
        "[ \"tab\\t\",\r\n  \"\\u00E9\" , 0 ]",
      ]
    case .ini:
      [
        "# mine\n[default]\naws_access_key_id = AKIA\naws_secret_access_key=a/b+c==\n\n; other\n[profile x y]\nregion= eu\n"
          + "s3 =\n  max = 20\n\n  size =  8MB\nrole =\n",
        "[a]\r\n  k = v\r\n  l =w w\r\n",
      ]
    case .netrc:
      [
        "# mine\nmachine a.example login u password p$1 account 'x'\nmachine b.example\n\tpassword q\n\tlogin v\n"
          + "macdef init\ncd /\nmachine not password no\n\ndefault login anonymous password a@b\n"
      ]
    case .npmrc:
      [
        "; mine\nregistry=https://r.example/\n//r.example/:_authToken=npm_a\\;b\\\\c\\${X}\nca[]=\"a\\nb\\u00e9\"\n"
          + "ca[] = 'c d'\nalways-auth\n[s]\nk = \"\\\\${HOME}\"\nflag=true\n"
      ]
    case .pgpass: ["# mine\nh:5432:*:u:a\\:b\\\\c\nh\\:x:1:d:u:\\a b#\n*:*:*:*:\r\n"]
    case .dockerConfig:
      [
        #"{"auths": {"h": {"auth": "dTpw", "email": "e"}, "i": {"auth": "dTpwPz8\/", "identitytoken": "t"}, "j": {"auth": ""}}, "#
          + #""HttpHeaders": {"X": "y"}, "credsStore": "none"}"#
      ]
    case .template: []
    }
  }

  private static func env(_ dialect: EnvDialect) -> [String] {
    switch dialect {
    case .portable: ["# mine\nA=1\n\nB='x y $z'\nC=\"a b\"\n  D=\nE='two\nlines'\n"]
    case .sh: ["export A=a'b c'\"d\\\"\\\\\"\\e # why\nB=\"x\\\ny\"\nC=\nD='it'\\''s'  \nE=a\\ b#c\n"]
    case .docker: ["# mine\nA=a b 'c' # d \nHOME\nB=\nC= x\r\n\tD=$e\n"]
    case .systemd: ["# mine\n; also\nA=a b # c\nB = \"x\\\"\\\ny\\z$\" \nC='q\nr'\nD=a\\ b\\ \n"]
    case .compose:
      [
        "export A=a#b # why\nB='x\\'y\\\\z'\nC=\"a\\n\\\"b\\\\ \\$c\\qd\"\nHOME\nD = 'e' # f\nE='two\nlines'\r\n"
      ]
    case .node: ["export A=a b # why\nB='x\\y'\nC=\"a\\nb\\tc\"\nD=`'\"`#c\nE = 'two\nlines'\n"]
    case .python:
      ["export A=a#b # why\nB='x\\'y\\\\z\\w'\nC=\"a\\n\\\"b\\\\ \\a\\qd\" # f\nD = 'e'\nE='two\nlines'\n"]
    }
  }
}

/// Damages files, always the same way for the same seed.
struct TextMutator {
  private var secrets: RandomSecrets
  private static let words = [
    "'", "\"", "\\", "\\n", "\\'", "\\\"", "$", "${a}", " ", "  ", "\n", "\r\n", "=", "#", " # x", ";", "a",
    "B", "\\u0041", "\\u00E9",
    "\\uD83D\\uDE00", "\\/", ",", ":", "[", "{", "}", "é", "export ", "\\;", "\\:", "\t", "1", "-",
  ].map { Array($0.utf8) }

  init(seed: UInt64) {
    secrets = RandomSecrets(seed: seed)
  }

  mutating func mutated(_ samples: [[UInt8]]) -> [UInt8] {
    var text = samples[secrets.below(samples.count)]
    for _ in 0...secrets.below(3) {
      let place = secrets.below(text.count + 1)
      switch secrets.below(4) {
      case 0 where place < text.count: text.remove(at: place)
      case 1: text.insert(contentsOf: secrets.next().prefix(3), at: place)
      default: text.insert(contentsOf: Self.words[secrets.below(Self.words.count)], at: place)
      }
    }
    return text
  }
}
