import Formats
import ImportExport
import InMemory
import Model
import Platform
import SecretMemory
import Store
import Suites
import TestSupport
import Testing

/// An import does all or nothing, and the next one takes back what one that was killed has left.
@Suite final class ImportRunTests {
  private let folder = SuiteFolder.make()
  private let items = MemoryKeychain()
  private let settings: SettingsStore
  private let keychain: KeychainStore

  init() {
    settings = SettingsStore(engine: PropertyListFolder(folder: folder, stateFolder: folder))
    keychain = KeychainStore(engine: items)
  }

  deinit { SuiteFolder.remove(folder) }

  /// Imports an export; `advance` runs after each thing that was written.
  private func run(
    _ text: String, _ conflicts: ImportOptions.Conflicts = .fail, advance: () -> Void = {}
  ) throws -> ImportPlan {
    var options = ImportOptions()
    options.conflicts = conflicts
    let contents = try reader().read(source(Array(text.utf8)), as: .json)
    let plan = try ImportPlan(contents, settings: settings, keychain: keychain, options)
    guard plan.conflict == nil else { return plan }
    let run = ImportRun(settings: settings, keychain: keychain, stateFolder: folder) {
      [keychain] (present, new, path) throws(StoreError) in
      guard let present else { return try keychain.permission(forNew: new, path: path, by: .current) }
      return try keychain.permission(for: present, to: .readWrite, path: path, by: .current)
    }
    try run.apply(plan, advance)
    return plan
  }

  private func stored(_ suite: ExactString) throws -> [ExactString: SettingValue]? {
    guard let snapshot = try settings.existingSuite(suite)?.fetch() else { return nil }
    return Dictionary(uniqueKeysWithValues: snapshot.entries.map { ($0.key, $0.value.value) })
  }

  private func secret(_ account: ExactString) throws -> String? {
    guard let item = try keychain.read({ $0[.generic(service: "s", account: account)] }).first else {
      return nil
    }
    let secret = try keychain.secret(of: item.id)
    return unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  private static func export(_ number: Int, _ secret: String) -> String {
    """
    {"keyhole":1,"defaults":{"s":{"k":{"type":"integer","value":\(number)},"same":{"type":"integer","value":5}},
    "t":{"k":{"type":"integer","value":\(number)}}},
    "keychain":[{"class":"generic","attributes":{"service":"s","account":"a"},"value":"\(secret)"}]}
    """
  }

  @Test func anotherValueIsAConflictUntilItIsDecided() throws {
    _ = try run(Self.export(1, "one"))
    let refused = try run(Self.export(2, "two"))
    #expect(
      refused.lines.map { "\($0.step.rawValue) \($0.path)" } == [
        "conflict defaults/s/k", "same defaults/s/same", "conflict defaults/t/k",
        "conflict keychain/generic/s/a",
      ])
    #expect(refused.conflict != nil)
    _ = try run(Self.export(2, "two"), .keep)
    #expect(try stored("s") == ["k": .integer(1), "same": .integer(5)] && secret("a") == "one")
    _ = try run(Self.export(2, "two"), .replace)
    #expect(try stored("s") == ["k": .integer(2), "same": .integer(5)] && secret("a") == "two")
    #expect(try stored("t") == ["k": .integer(2)])
  }

  /// The keychain fails after the first suite was written.
  @Test func failureTakesBackWhatWasWritten() throws {
    _ = try run(Self.export(1, "one"))
    try settings.existingSuite("t")?.update { (contents) throws(StoreError) in contents.settings["k"] = nil }
    try settings.removeSuite("t")
    #expect(throws: ImportExportError.self) {
      try run(Self.export(2, "two"), .replace) { items.fail(with: .noSpace) }
    }
    items.fail(with: nil)
    #expect(try stored("s") == ["k": .integer(1), "same": .integer(5)] && secret("a") == "one")
    #expect(try stored("t") == nil && !ImportRecovery.isNeeded(state: folder))
  }

  @Test func attributeThatNoItemTakesIsRefused() throws {
    let text = """
      {"keyhole":1,"keychain":[{"class":"generic","value":"x",
      "attributes":{"service":"s","account":"a","keyhole.access":"x"}}]}
      """
    #expect(throws: ImportExportError.self) { try run(text) }
    #expect(try secret("a") == nil)
  }

  @Test func twoAtOnceAreRefused() throws {
    let lock = try Descriptor(folder + "/import.lock", [.readingAndWriting, .create])
    try #require(try lock.tryLock())
    #expect { try run(Self.export(1, "one")) } throws: {
      ($0 as? ImportExportError)?.reason.contains("another import is running") == true
    }
    #expect(try stored("s") == nil)
  }

  /// The remains of an import that was killed between two suites: the journal, and one suite of two.
  @Test func takesBackItsOwnChangesButNotThoseOfOthers() throws {
    for (suite, entries) in [
      ("new", ["k": .integer(1)]), ("there", ["k": .integer(2), "other": .integer(5)]),
    ] as [(ExactString, [ExactString: SettingValue])] {
      try settings.createSuite(suite)
      try settings.existingSuite(suite)?.update { (contents) throws(StoreError) in
        contents.settings = SharedDictionary(entries.mapValues { Setting($0) })
      }
    }
    let key = { (name: String, before: String, after: Int) in
      "<dict><key>name</key><string>\(name)</string>\(before)<key>after</key><integer>\(after)</integer></dict>"
    }
    let suite = { (name: String, wasThere: Bool, keys: String) in
      "<dict><key>name</key><string>\(name)</string><key>wasThere</key><\(wasThere)/><key>keys</key><array>\(keys)</array></dict>"
    }
    let there =
      key("k", "<key>before</key><string>was</string>", 2)
      + key("other", "<key>before</key><integer>1</integer>", 2)
    let journal = PropertyListText.xml(
      "<dict><key>version</key><integer>1</integer><key>began</key><integer>1</integer><key>mark</key><integer>5</integer>"
        + "<key>newItems</key><array/><key>replacedItems</key><array/><key>suites</key><array>"
        + suite("new", false, key("k", "", 1)) + suite("there", true, there) + "</array></dict>")
    Corpus.write(Array(journal.utf8), to: folder + "/import.journal")
    #expect(throws: ImportExportError.self) { try run(Self.export(1, "one")) }
    guard case .takenBack = ImportRecovery.run(state: folder, settings: settings, keychain: { nil }) else {
      Issue.record("nothing was taken back")
      return
    }
    #expect(try stored("new") == nil)
    #expect(try stored("there") == ["k": .string("was"), "other": .integer(5)])
    #expect(!ImportRecovery.isNeeded(state: folder))
    _ = try run(Self.export(1, "one"))
  }
}
