import CPlist
import Model
import Store
import Suites
import TestSupport
import Testing

/// Values read back the same, in both forms, here and in libplist.
@Suite(.timeLimit(.minutes(2))) struct RoundTripTests {
  let sandbox = SuiteSandbox()

  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomValuesSurviveXML(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let lists = PropertyLists()
    for _ in 0..<200 {
      let value = random.value()
      #expect(lists.value(xml: try lists.xml(value)) == value)
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomSuitesSurviveTheirFiles(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let engine = sandbox.engine()
    _ = try engine.create("a")
    var forms: Set<String> = []
    for round in 0..<40 {
      let expected = random.entries(round.isMultiple(of: 2) ? SplitMix64.anything : SplitMix64.plain)
      let settings = SharedDictionary(expected.mapValues { Setting($0) })
      let result = try engine.update("a", known: nil) { $0.settings = settings }
      #expect(result.settings.mapValues(\.value).dictionary == expected)
      #expect(try sandbox.engine().values("a") == expected)
      forms.insert(String(sandbox.text(sandbox.path("a")).prefix(5)))
    }
    #expect(forms == ["<?xml", "bplis"], "both forms were tried")
  }

  @Test(arguments: 0..<10 as Range<UInt64>)
  func libplistReadsWhatIsWritten(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let lists = PropertyLists()
    for _ in 0..<50 {
      let value = SettingValue.dictionary(random.entries(SplitMix64.plain)).withoutTraps
      let xml = try lists.xml(value)
      // libplist's binary form is read by our reader: both readers and both writers have to agree.
      let binary = try #require(Libplist.binary(xml))
      sandbox.write(binary, to: sandbox.path("a"))
      #expect(try sandbox.engine().values("a").map { SettingValue.dictionary($0) } == value)
      #expect(lists.value(xml: try #require(Libplist.xml(binary))) == value)
    }
  }

  @Test func libplistReadsOurBinaryForm() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    let values: [ExactString: SettingValue] = [
      "c": .string("\u{1}é😀"),
      "i": .array([.integer(-1), .integer(300), .integer(1 << 40), .integer(70000)]),
      "d": .dictionary(["x": .data([UInt8](repeating: 7, count: 300)), "y": .bool(false), "z": .real(0.1)]),
      "u": .uid(70000), "date": .date(1_700_000_000), "many": .array((0..<300).map { .integer($0) }),
    ]
    for (key, value) in values { try engine.set(key, value, in: "a") }
    let bytes = sandbox.bytes(sandbox.path("a"))
    #expect(bytes.starts(with: "bplist00".utf8))
    let xml = try #require(Libplist.xml(bytes))
    #expect(PropertyLists().value(xml: xml) == .dictionary(values))
  }
}

extension SettingValue {
  /// Without what libplist 2.2.0 can't do: dates beyond 32 bits since 2001, the sign of zero, a carriage return,
  /// and `nan` and infinity, which its binary form keeps and its XML does not.
  fileprivate var withoutTraps: SettingValue {
    switch self {
    case .date(let date): .date(SettingDate(seconds: 978_307_200 + date.seconds % 1_000_000_000))
    case .real(let number): .real(number.isFinite && !number.isZero ? number : 1)
    case .string(let text):
      .string(ExactString(String(text.string.unicodeScalars.map { $0 == "\r" ? "-" : Character($0) })))
    case .array(let items): .array(items.map(\.withoutTraps))
    // A reference in XML is a dictionary to it.
    case .uid(let number): .integer(Int128(number))
    case .dictionary(let entries):
      .dictionary(
        [ExactString: SettingValue](
          entries.map {
            (ExactString($0.key.string.filter { !$0.unicodeScalars.contains("\r") }), $0.value.withoutTraps)
          }
        ) { $1 })
    default: self
    }
  }
}

/// libplist, as a second opinion.
enum Libplist {
  static func binary(_ list: [UInt8]) -> [UInt8]? {
    unsafe convert(list) { unsafe plist_to_bin($0, &$1, &$2) }
  }

  static func xml(_ list: [UInt8]) -> [UInt8]? {
    unsafe convert(list) { unsafe plist_to_xml($0, &$1, &$2) }
  }

  private static func convert(
    _ list: [UInt8], _ write: (plist_t, inout UnsafeMutablePointer<CChar>?, inout UInt32) -> Void
  ) -> [UInt8]? {
    var node: plist_t?
    unsafe list.withUnsafeBytes {
      unsafe plist_from_memory($0.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32($0.count), &node)
    }
    guard let node = unsafe node else { return nil }
    defer { unsafe plist_free(node) }
    var output: UnsafeMutablePointer<CChar>?
    var length: UInt32 = 0
    unsafe write(node, &output, &length)
    guard let output = unsafe output else { return nil }
    defer { unsafe plist_to_xml_free(output) }
    return unsafe UnsafeRawBufferPointer(start: output, count: Int(length)).map { $0 }
  }
}
