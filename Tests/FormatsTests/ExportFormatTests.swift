import Formats
import ImportExport
import Model
import Platform
import SecretMemory
import Suites
import Testing

/// Every format reads back what was written.
@Suite struct ExportFormatTests {
  private static let items: [(service: String, account: String, secret: String)] = [
    ("app", "API_KEY", "it's $HOME"), ("app", "MULTI", "line 1\nline 2\n"), ("app", "EMPTY", ""),
    ("app", "QUOTES", "\"a\" 'b' \\ # c"),
  ]

  private func export(_ items: [(service: String, account: String, secret: String)]) -> ExportContents {
    var contents = ExportContents()
    contents.items = items.map { item in
      let attributes = [
        ItemEntry.Attribute("user.account", item.account), ItemEntry.Attribute("user.service", item.service),
      ]
      return ExportItem(
        .generic, path: "keychain/generic/\(item.service)/\(item.account)", attributes: attributes,
        modified: nil
      ) { () throws(FormatError) in try bytes(item.secret) }
    }
    return contents
  }

  private func bytes(_ text: String) throws(FormatError) -> SecretBytes {
    guard var secret = try? SecretBytes() else { throw FormatError("no memory") }
    unsafe Array(text.utf8).withUnsafeBytes { try? unsafe secret.append($0) }
    return secret
  }

  private func written(_ contents: ExportContents, _ format: ExportFormat, prefix: Bool = false) throws
    -> [UInt8]
  {
    var bytes: [UInt8] = []
    let sink = try ByteSink { bytes += $0.array }
    var writer = ExportWriter(format, propertyLists: PropertyLists(), paths: TreePaths())
    writer.prefixesService = prefix
    try writer.write(contents, to: sink)
    return bytes
  }

  @Test(arguments: ExportFormat.allCases) func aServiceRoundTrips(format: ExportFormat) throws {
    let bytes = try source(written(export(Self.items), format))
    let import_ = try reader(service: format == .env ? "app" : nil)
      .read(bytes, as: try #require(try ImportReader.format(of: bytes)))
    #expect(
      import_.items.map { TreePaths.path($0.identity) }
        == Self.items.map { "keychain/generic/app/\($0.account)" })
    #expect(try import_.items.map { try text($0.secret) } == Self.items.map(\.secret))
  }

  @Test func collectionsRoundTrip() throws {
    var contents = export([])
    contents.collections.entries = [
      "My_work": ServiceCollections.Entry(label: "My \"work\"", created: 7),
      "login": ServiceCollections.Entry(label: "Mine"), "bare": ServiceCollections.Entry(label: nil),
    ]
    contents.collections.aliases = ["default": "My_work", "none": ""]
    let bytes = try source(written(contents, .json))
    #expect(try reader(service: nil).read(bytes, as: .json).collections == contents.collections)
  }

  /// A variable holds one value; the others keep the item's `otpauth:` URI.
  @Test(arguments: ExportFormat.allCases) func anOtpauthURIRoundTrips(format: ExportFormat) throws {
    let uri = "otpauth://totp/app:A?secret=JBSWY3DPEHPK3PXP&image=\"x\""
    var contents = export([("app", "A", "secret"), ("app", "B", "other")])
    let item = contents.items[0]
    contents.items[0] = ExportItem(
      .generic, path: item.path,
      attributes: [ItemEntry.Attribute("user.account", "A"), ItemEntry.Attribute("user.service", "app")],
      modified: nil, secret: { () throws(FormatError) in try bytes("secret") },
      otpauth: { () throws(FormatError) in try bytes(uri) })
    let written = try source(written(contents, format))
    let read = try reader(service: format == .env ? "app" : nil)
      .read(written, as: try #require(try ImportReader.format(of: written)))
    #expect(try read.items.map { try text($0.secret) } == ["secret", "other"])
    #expect(try read.items.map { try $0.otpauth.map(text) } == [format == .env ? nil : uri, nil])
  }

  @Test func theServiceStandsBeforeANameWhereItIsNeededOrAskedFor() throws {
    let names = { (bytes: [UInt8]) in
      String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { String($0.prefix { $0 != "=" }) }
    }
    let two = export([("a", "KEY", "1"), ("b", "KEY", "2"), ("b", "OTHER", "3")])
    #expect(try names(written(two, .env)) == ["a_KEY", "b_KEY", "OTHER"])
    #expect(try names(written(export([("a", "KEY", "1")]), .env, prefix: true)) == ["a_KEY"])
    #expect(try names(written(export([("a.b", "", "1")]), .env)) == ["a_b"])
  }

  @Test func aNameThatWouldBeTwiceIsFoundBeforeAnythingIsWritten() throws {
    var bytes: [UInt8] = []
    let sink = try ByteSink { bytes += $0.array }
    let contents = export([("a", "x", "1"), ("a.b", "c", "2"), ("a_b", "c", "3")])
    #expect(throws: FormatError.self) {
      try ExportWriter(.env, propertyLists: PropertyLists(), paths: TreePaths()).write(contents, to: sink)
    }
    #expect(bytes.isEmpty)
  }

  /// An item that can't be read is left out, and the rest is a whole export.
  @Test(arguments: ExportFormat.allCases) func anItemWithoutASecretIsLeftOut(format: ExportFormat) throws {
    for place in 0...2 {
      var contents = export([("s", "a", "1"), ("s", "b", "2")])
      contents.items.insert(
        ExportItem(
          .generic, path: "keychain/generic/s/x",
          attributes: [ItemEntry.Attribute("user.account", "x"), ItemEntry.Attribute("user.service", "s")],
          modified: nil
        ) { () throws(FormatError) in nil }, at: place)
      let bytes = try source(written(contents, format))
      let read = try reader(service: format == .env ? "s" : nil)
        .read(bytes, as: try #require(try ImportReader.format(of: bytes)))
      #expect(try read.items.map { try text($0.secret) } == ["1", "2"])
    }
  }
}
