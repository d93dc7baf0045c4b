import Model
import Platform
import SecretMemory
import Store
import Testing
import Tree
import ViewFormats

@testable import Service
@testable import Views

/// Earlier versions of views, and removed ones.
struct ViewHistoryTests {
  private static let comment = "# by hand\nTOKEN=abc\nUSER=peter\n"
  private static let outline =
    "# by hand\nTOKEN={{ keychain/generic/app/token }}\nUSER={{ keychain/generic/app/user }}\n"

  private func stored() throws -> StoredTree {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    return stored
  }

  private func versions(_ stored: StoredTree) throws -> [ItemVersion] {
    try #require(stored.tree.views).versions(of: "app")
  }

  @Test func aVersionIsWhatItWasMadeOf() throws {
    let stored = try stored()
    // The values alone are versions of the items.
    try stored.write("views/app", "TOKEN=new\nUSER=peter\n")
    try stored.write("views/app", "TOKEN=abc\nUSER=peter\n")
    #expect(try versions(stored).isEmpty)
    #expect(stored.tree.changesOfViews(after: Change(.unlocked, .keychain, origin: .local)).isEmpty)
    try stored.write("views/app", Self.comment)
    try stored.write("views/app", "USER=peter\n")
    let numbers = try versions(stored).map(\.number)
    #expect(numbers.count == 2)
    let path = ".keyhole/history/views/app"
    #expect(try stored.list(".keyhole/history/views") == ["app"])
    #expect(try stored.list(path) == numbers.map { "\($0)" }.sorted())
    #expect(try stored.text("\(path)/\(numbers[1])") == Self.outline)
    #expect(try stored.size("\(path)/\(numbers[1])") == Self.outline.utf8.count)
    #expect(stored.failure { try stored.write("\(path)/\(numbers[1])", "x") } != nil)
    // No part of it shows among the items.
    #expect(try stored.list(".keyhole/history/keychain/generic") == ["app"])
  }

  @Test func aLengthThatIsComputedAnewIsNoVersion() throws {
    let stored = try stored()
    let views = try #require(stored.tree.views)
    for value in ["one", "three", "seven"] {
      try stored.write("keychain/generic/app/token/value", value)
      views.sealLengths(of: try views.all())
    }
    #expect(try versions(stored).isEmpty)
  }

  @Test func aRemovedViewComesBack() throws {
    let stored = try stored()
    try stored.write("views/app", Self.comment)
    try stored.remove("views/app")
    let last = try #require(try versions(stored).last)
    #expect(last.changes.contains(.removal))
    try #require(stored.tree.keychain).restore(last)
    #expect(try stored.text("views/app") == Self.comment)
    try stored.reopen()
    #expect(try stored.text("views/app") == Self.comment)
  }

  /// mv(1) from another file system: unlink(2), then a new file.
  @Test func aFileInThePlaceOfARemovedViewIsThatViewAgain() throws {
    let stored = try stored()
    try stored.remove("views/app")
    #expect(try stored.list("views").isEmpty)
    try stored.write("views/app", "# moved\nTOKEN=moved\nMORE=1\n")
    #expect(try stored.text("views/app") == "# moved\nTOKEN=moved\nMORE=1\n")
    #expect(try stored.text("keychain/generic/app/token/value") == "moved")
    #expect(try stored.text("keychain/generic/app/MORE/value") == "1")
    #expect(stored.failure { try stored.write("views/other", "A=b\n") } == .EPERM)
  }

  @Test func aFileThatDoesNotParseBringsTheRemovedViewBack() throws {
    let stored = try stored()
    try stored.remove("views/app")
    #expect(stored.failure { try stored.write("views/app", "TOKEN=x\nno line\n") } == .EINVAL)
    #expect(try stored.text("views/app") == "TOKEN=abc\nUSER=peter\n")
  }

  @Test func ofAPurgedViewNothingIsKept() throws {
    let stored = try stored()
    try stored.write("views/app", Self.comment)
    let views = try #require(stored.tree.views)
    try views.switchOffHistory(of: views.existing("app"))
    #expect(try versions(stored).isEmpty)
    try stored.remove("views/app")
    #expect(try versions(stored).isEmpty)
    #expect(stored.failure { try stored.write("views/app", "A=b\n") } == .EPERM)
  }

  @Test func aViewTakesThePlaceOfAnotherInOneStep() throws {
    let stored = try stored()
    try stored.makeView("other", [(["B"], "keychain/generic/app/user")])
    let generation = stored.tree.keychain?.changeNumber
    try stored.rename("views/app", "views/other")
    #expect(stored.tree.keychain?.changeNumber == generation.map { $0 + 1 })
    #expect(try stored.list("views") == ["other"])
    #expect(try stored.text("views/other") == "TOKEN=abc\nUSER=peter\n")
    // The one that was replaced is kept.
    #expect(try #require(stored.tree.views).versions(of: "other").contains { $0.changes.contains(.removal) })
  }
}

/// References follow what they refer to.
struct ViewRenameTests {
  private static let template =
    "\\{{ {{ keychain/generic/app/token | json }} {{keychain/generic/app/user}} {{  defaults/org.example/port\t}}\n"

  private func stored() throws -> StoredTree {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeDirectories("defaults/org.example")
    try stored.write("defaults/org.example/port", "8080")
    try stored.makeView(
      "app", [(["TOKEN"], "keychain/generic/app/token"), (["PORT"], "defaults/org.example/port")])
    try stored.write("templates/conf", Self.template)
    return stored
  }

  @Test func itemsThatAreMoved() throws {
    let stored = try stored()
    let generation = stored.tree.keychain?.changeNumber
    try stored.rename("keychain/generic/app/token", "keychain/generic/app/key")
    #expect(stored.tree.keychain?.changeNumber == generation.map { $0 + 1 })
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    #expect(try stored.size("views/app") == 20)
    #expect(try stored.text("views/conf") == "{{ \"abc\" peter 8080\n")
    #expect(
      try stored.text("templates/conf") == Self.template.replacing("app/token", with: "app/key"))
    try stored.rename("keychain/generic/app", "keychain/generic/other")
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    #expect(try stored.text("views/conf") == "{{ \"abc\" peter 8080\n")
    #expect(stored.tree.views?.problems().isEmpty == true)
    try stored.reopen()
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
  }

  @Test func settingsAndSuitesThatAreMoved() throws {
    let stored = try stored()
    try stored.rename("defaults/org.example/port", "defaults/org.example/number")
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    try stored.rename("defaults/org.example", "defaults/org.example.app")
    #expect(try stored.text("views/conf") == "{{ \"abc\" peter 8080\n")
    #expect(
      try stored.text("templates/conf")
        == Self.template.replacing("org.example/port", with: "org.example.app/number"))
    let views = try #require(stored.tree.views)
    #expect(try views.all().allSatisfy { $0.document.properties["moving"] == nil })
  }

  /// The process ended after the setting was renamed.
  @Test func anInterruptedRenameOfASettingIsFinished() throws {
    let stored = try stored()
    let views = try #require(stored.tree.views)
    let rename = Views.SettingRename("org.example", "port", to: "org.example", "number")
    #expect(
      stored.failure {
        try views.following([rename]) { () throws(StoreError) in throw .noSpace }
      } == .ENOSPC)
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    try views.note([rename])
    _ = try stored.tree.settings.suite("org.example").update { contents in
      contents.settings["number"] = contents.settings.removeValue(forKey: "port")
    }
    #expect(views.problems().contains { $0.reason.contains("defaults/org.example/port") })
    try stored.reopen()
    let opened = try #require(stored.tree.views)
    opened.finishRenames()
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    #expect(opened.problems().isEmpty)
  }
}
