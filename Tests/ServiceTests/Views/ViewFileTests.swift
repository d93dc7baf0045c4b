import Glibc
import Model
import Platform
import SecretMemory
import Store
import Testing
import Tree
import ViewFormats
import Views

@testable import Service

/// Views in a tree over a vault.
struct ViewFileTests {
  @Test func rendersItemsAndSettings() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeDirectories("defaults/org.example")
    try stored.write("defaults/org.example/port", "8080")
    try stored.makeView(
      "app",
      [(["TOKEN"], "keychain/generic/app/token"), (["PORT"], "defaults/org.example/port")])
    #expect(try stored.text("views/app") == "TOKEN=abc\nPORT=8080\n")
    #expect(try stored.list("views") == ["app"])
    #expect(try stored.list("templates").isEmpty)
    #expect(try stored.size("views/app") == 20)
    #expect(try stored.attribute("keyhole.format", "views/app") == "env")
    #expect(try stored.attribute("keyhole.new", "views/app") == "keychain/generic/app")
    #expect(try stored.attribute("keyhole.stale", "views/app") == "false")
    try stored.reopen()
    #expect(try stored.list("views") == ["app"])
  }

  @Test func isNoItemAndNoKeychainFolder() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    #expect(try stored.list("keychain/generic") == ["app"])
    #expect(stored.failure { try stored.makeItem("keychain/generic/org.keyhole.documents/x", "y") } == .EPERM)
    #expect(try stored.text("views/app") == "TOKEN=abc\nUSER=peter\n")
  }

  @Test func aWriteChangesWhatDiffers() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let untouched = try stored.modified("keychain/generic/app/user/value")
    try stored.write("views/app", "# by hand\nTOKEN=new\nUSER=peter\nEXTRA='a b'\n")
    #expect(try stored.text("keychain/generic/app/token/value") == "new")
    #expect(try stored.text("keychain/generic/app/EXTRA/value") == "a b")
    #expect(try stored.modified("keychain/generic/app/user/value") == untouched)
    #expect(try stored.text("views/app") == "# by hand\nTOKEN=new\nUSER=peter\nEXTRA='a b'\n")
    #expect(try stored.size("views/app") == 43)
    // An entry that is gone leaves its item.
    try stored.write("views/app", "USER=peter\n")
    #expect(try stored.text("views/app") == "USER=peter\n")
    #expect(try stored.text("keychain/generic/app/token/value") == "new")
  }

  @Test func aNewEntryNeverReplacesWhatIsThere() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeItem("keychain/generic/app/OTHER", "precious")
    try stored.makeAppView()
    let text = "TOKEN=abc\nUSER=peter\n"
    #expect(stored.failure { try stored.write("views/app", text + "OTHER=clobber\n") } == .EPERM)
    #expect(try stored.text("keychain/generic/app/OTHER/value") == "precious")
    #expect(try stored.text("views/app") == text)
    // With its value it becomes a part of the view.
    try stored.write("views/app", text + "OTHER=precious\n")
    try stored.write("views/app", text + "OTHER=new\n")
    #expect(try stored.text("keychain/generic/app/OTHER/value") == "new")
  }

  @Test func whatDoesNotParseChangesNothing() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    #expect(stored.failure { try stored.write("views/app", "TOKEN=other\nnot a line\n") } == .EINVAL)
    #expect(try stored.text("views/app") == "TOKEN=abc\nUSER=peter\n")
    #expect(try stored.text("keychain/generic/app/token/value") == "abc")
  }

  /// An item that is missing is made again by a write that has a value for it, or left out.
  @Test func aWriteMendsAViewOfWhichAnItemIsMissing() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    try stored.remove("keychain/generic/app/token/value")
    #expect(stored.failure { _ = try stored.text("views/app") } == .ENOENT)
    let problem = try #require(stored.tree.views?.problems().first)
    #expect(problem.reason == "it refers to keychain/generic/app/token, which is not there")
    let views = try #require(stored.tree.views)
    #expect(try views.missingReferences(of: views.existing("app")) == ["keychain/generic/app/token"])
    let node = try stored.node("views/app")
    let error = #expect(throws: StoreError.self) {
      _ = try stored.tree.open(node, .read, by: .current)
    }
    #expect(error?.message.contains("keychain/generic/app/token, which is not there") == true)
    try stored.write("views/app", "TOKEN=further\nUSER=peter\n")
    #expect(try stored.text("keychain/generic/app/token/value") == "further")
    #expect(try stored.text("views/app") == "TOKEN=further\nUSER=peter\n")
    try stored.remove("keychain/generic/app/token/value")
    try stored.write("views/app", "USER=peter\n")
    #expect(try stored.text("views/app") == "USER=peter\n")
    #expect(!stored.exists("keychain/generic/app/token/value"))
  }

  @Test func aWriteMendsAViewThatItsDialectCantCarry() throws {
    let stored = try StoredTree()
    try stored.makeItem("keychain/generic/app/token", "it's $x")
    try stored.makeView("app", [(["TOKEN"], "keychain/generic/app/token")])
    #expect(stored.failure { _ = try stored.text("views/app") } == .EILSEQ)
    try stored.write("views/app", "TOKEN=plain\n")
    #expect(try stored.text("views/app") == "TOKEN=plain\n")
  }

  /// A refusal comes before the names are shown.
  @Test func aPreviewRefusesWhatAWriteRefuses() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeItem("keychain/generic/app/OTHER", "precious")
    try stored.makeAppView()
    let views = try #require(stored.tree.views)
    let permit = try views.permission(toOpen: views.existing("app"), writing: true, by: .current).fetch()
    let text = Array("TOKEN=abc\nUSER=peter\nMORE=1\n".utf8)
    #expect(try views.preview(SecretBytes(copying: text.span), as: "app", permit).added == ["MORE"])
    let refused = text + Array("OTHER=clobber\n".utf8)
    #expect(
      stored.failure {
        _ = try views.preview(SecretBytes(copying: refused.span), as: "app", permit)
      } == .EPERM)
  }

  @Test func newEntriesFollowARenamedService() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    // One item that leaves is no rename of the service.
    try stored.rename("keychain/generic/app/token", "keychain/generic/app/TOKEN")
    #expect(try stored.attribute("keyhole.new", "views/app") == "keychain/generic/app")
    try stored.rename("keychain/generic/app", "keychain/generic/service")
    #expect(try stored.attribute("keyhole.new", "views/app") == "keychain/generic/service")
    try stored.write("views/app", "TOKEN=abc\nUSER=peter\nMORE=1\n")
    #expect(try stored.list("keychain/generic") == ["service"])
    #expect(try stored.text("keychain/generic/service/MORE/value") == "1")
  }

  @Test func aValueInACommentIsRefused() throws {
    let stored = try StoredTree()
    try stored.makeItem("keychain/generic/app/token", "a-long-secret-value")
    try stored.makeView("app", [(["TOKEN"], "keychain/generic/app/token")])
    #expect(
      stored.failure { try stored.write("views/app", "# a-long-secret-value\nTOKEN=b\n") } == .EINVAL)
    #expect(try stored.text("views/app") == "TOKEN=a-long-secret-value\n")
  }

  /// A plain word is looked for from 12 bytes on, behind the key of the same entry from 6.
  @Test(arguments: [
    ("correcthorse", "# a correcthorse b", true), ("correcthors", "# a correcthors b", false),
    ("horses", "# TOKEN=horses", true), ("horse", "# TOKEN=horse", false),
    ("hor5es-1", "# a hor5es-1 b", true), ("hor5es-", "# a hor5es- b", false),
  ])
  func shortAndPlainValuesMayStandInComments(value: String, comment: String, isRefused: Bool) throws {
    let stored = try StoredTree()
    try stored.makeItem("keychain/generic/app/token", value)
    try stored.makeView("app", [(["TOKEN"], "keychain/generic/app/token")])
    let text = "\(comment)\nTOKEN=\(value)\n"
    #expect(stored.failure { try stored.write("views/app", text) } == (isRefused ? .EINVAL : nil))
    #expect(try stored.text("views/app") == (isRefused ? "TOKEN=\(value)\n" : text))
  }

  @Test func aChangeOfAnItemIsOneOfTheView() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let before = try stored.modified("views/app")
    try stored.write("keychain/generic/app/token/value", "longer than before")
    #expect(try stored.size("views/app") == (try stored.bytes("views/app").count))
    #expect(try stored.modified("views/app") >= before)
    #expect(try stored.attribute("keyhole.stale", "views/app") == "false")
    try stored.remove("keychain/generic/app/token/value")
    #expect(try stored.attribute("keyhole.stale", "views/app") == "true")
    #expect(stored.failure { _ = try stored.text("views/app") } == .ENOENT)
  }

  @Test func twoViewsOfOneItemKeepBothHalves() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    try stored.makeView(
      "other", [(["A"], "keychain/generic/app/token"), (["B"], "keychain/generic/app/user")])
    let one = try stored.tree.open(stored.node("views/app"), [.read, .write], by: .current)
    let two = try stored.tree.open(stored.node("views/other"), [.read, .write], by: .current)
    try one.rewrite("TOKEN=first\nUSER=peter\n")
    try two.rewrite("A=abc\nB=second\n")
    try one.flush(by: .current)
    try two.flush(by: .current)
    one.close()
    two.close()
    #expect(try stored.text("views/app") == "TOKEN=first\nUSER=second\n")
    #expect(try stored.text("views/other") == "A=first\nB=second\n")
  }

  @Test func anOpenViewKeepsItsSnapshot() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let handle = try stored.tree.open(stored.node("views/app"), .read, by: .current)
    defer { handle.close() }
    try stored.write("keychain/generic/app/token/value", "changed")
    #expect(try handle.read(at: 0, count: 100) { $0.count } == 21)
    #expect(handle.snapshotSize == 21)
  }

  @Test func editorsSaveByRename() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    // sed -i
    try stored.write("views/sedAbCdEf", "TOKEN=sed\nUSER=peter\n")
    try stored.rename("views/sedAbCdEf", "views/app")
    #expect(try stored.text("keychain/generic/app/token/value") == "sed")
    #expect(try stored.list("views") == ["app"])
    // vim with 'backupcopy=no'
    try stored.rename("views/app", "views/app~")
    #expect(try stored.list("views") == ["app~"])
    try stored.write("views/app", "TOKEN=vim\nUSER=peter\n")
    try stored.remove("views/app~")
    #expect(try stored.text("views/app") == "TOKEN=vim\nUSER=peter\n")
    #expect(try stored.list("views") == ["app"])
  }

  @Test func refusesWhatIsNoView() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    #expect(stored.failure { try stored.write("views/new", "A=b\n") } == .EPERM)
    #expect(stored.failure { try stored.makeDirectories("views/folder") } == .EPERM)
    #expect(stored.failure { try stored.removeDirectory("views") } == .EPERM)
    #expect(stored.failure { try stored.makeAppView() } == .EEXIST)
    #expect(stored.failure { try stored.rename("views/app", "keychain/generic/app/token/value") } != nil)
    for name in ["", "a/b", ".env", "a%", "x~", "tmp1"] {
      #expect(stored.failure { try stored.makeView(name, []) } == .EINVAL, "\(name)")
    }
  }

  @Test func movesAndRemovesKeepItems() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    try stored.rename("views/app", "views/renamed")
    #expect(try stored.list("views") == ["renamed"])
    #expect(try stored.text("views/renamed") == "TOKEN=abc\nUSER=peter\n")
    #expect(try stored.attribute("keyhole.new", "views/renamed") == "keychain/generic/app")
    try stored.remove("views/renamed")
    #expect(try stored.list("views").isEmpty)
    #expect(try stored.text("keychain/generic/app/token/value") == "abc")
  }

  @Test func dialectsAreAttributes() throws {
    let stored = try StoredTree()
    try stored.makeItem("keychain/generic/app/token", "it's $x")
    try stored.makeView("app", [(["TOKEN"], "keychain/generic/app/token")])
    #expect(stored.failure { _ = try stored.text("views/app") } == .EILSEQ)
    let problem = stored.tree.views?.problems().first
    #expect(problem?.subject == "views/app")
    #expect(problem?.reason.contains("TOKEN") == true)
    try stored.setAttribute("keyhole.dialect", "docker", "views/app")
    #expect(try stored.text("views/app") == "TOKEN=it's $x\n")
    #expect(stored.tree.views?.problems().isEmpty == true)
    #expect(stored.failure { try stored.setAttribute("keyhole.dialect", "perl", "views/app") } == .EINVAL)
  }

  @Test func templatesAreTextsAndTheirViewsAreReadOnly() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.write("templates/conf", "token = {{ keychain/generic/app/token | json }}\n")
    #expect(try stored.list("templates") == ["conf"])
    #expect(try stored.text("views/conf") == "token = \"abc\"\n")
    #expect(try stored.text("templates/conf") == "token = {{ keychain/generic/app/token | json }}\n")
    #expect(stored.failure { try stored.write("views/conf", "x") } == .EROFS)
    #expect(stored.failure { try stored.write("templates/loop", "{{ views/conf }}") } == .ELOOP)
    #expect(stored.failure { try stored.write("templates/conf", "{{ nowhere/at/all }}") } == .EINVAL)
    try stored.write("templates/conf", "{{ keychain/generic/app/user }}\n")
    #expect(try stored.text("views/conf") == "peter\n")
    try stored.remove("templates/conf")
    #expect(try stored.list("views").isEmpty)
  }

  @Test func keepsALockedViewsLength() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let keychain = try #require(stored.tree.keychain)
    let views = try #require(stored.tree.views)
    let view = try views.existing("app")
    views.sealLengths(of: [view])
    let handle = try stored.tree.open(stored.node("views/app"), .read, by: .current)
    defer { handle.close() }
    try stored.tree.lock()
    #expect(keychain.engine.locking.lockState != .open)
    #expect(try stored.size("views/app") == 21)
    #expect(try stored.attribute("keyhole.stale", "views/app") == "false")
    #expect(stored.failure { _ = try stored.text("views/app") } == .ENOKEY)
    #expect(stored.failure { _ = try handle.read(at: 0, count: 1) { _ in } } == .ENOKEY)
  }

  /// The lengths are sealed after each change, which a lock does not wait for.
  @Test func keepsTheLengthOfAValueThatChangedJustBeforeTheLock() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    try stored.write("keychain/generic/app/token/value", "longer")
    try stored.tree.lock()
    #expect(try stored.size("views/app") == 24)
    #expect(try stored.attribute("keyhole.stale", "views/app") == "false")
    try stored.reopen()
    #expect(try stored.attribute("keyhole.stale", "views/app") == "false")
  }

  /// Of a process that was killed right after a change the length is not kept.
  @Test func aLengthThatWasNotKeptIsStaleWhileLocked() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let views = try #require(stored.tree.views)
    views.sealLengths(of: try views.all())
    try stored.write("keychain/generic/app/token/value", "longer")
    try stored.reopen()
    try #require(stored.tree.keychain).lock()
    #expect(try stored.size("views/app") == 21)
    #expect(try stored.attribute("keyhole.stale", "views/app") == "true")
  }

  /// A mount has to answer while a large view is measured.
  @Test(.timeLimit(.minutes(2))) func aLargeViewIsMeasuredBesides() throws {
    let stored = try StoredTree()
    try stored.makeItem("keychain/generic/big/a", String(repeating: "x", count: 80_000))
    try stored.makeView("big", [(["A"], "keychain/generic/big/a")])
    let views = try #require(stored.tree.views)
    views.measureLargeViewsLater(sealing: true)
    let view = try views.existing("big")
    #expect(try views.status(of: view).isStale)
    while try views.status(of: views.existing("big")).isStale { sched_yield() }
    #expect(try views.status(of: views.existing("big")).size == 80_003)
  }

  @Test func reportsEachChangeOnce() throws {
    let stored = try StoredTree()
    try stored.makeApp()
    try stored.makeAppView()
    let item = try #require(try stored.tree.keychain?.item(with: .generic(service: "app", account: "token")))
    let change = Change(.modified, .item(item.id, item.identity), origin: .local)
    let view = try #require(stored.tree.changesOfViews(after: change).first)
    #expect(ChangeEventPath.path(view) == "views/app")
    #expect(stored.tree.changesOfViews(after: change).isEmpty)
    try stored.write("keychain/generic/app/token/value", "changed")
    #expect(stored.tree.changesOfViews(after: change).count == 1)
  }

  @Test func aMillionBytes() throws {
    let stored = try StoredTree()
    let secret = String(repeating: "x", count: 500_000)
    try stored.makeItem("keychain/generic/big/a", secret)
    try stored.makeItem("keychain/generic/big/b", secret)
    try stored.makeView("big", [(["A"], "keychain/generic/big/a"), (["B"], "keychain/generic/big/b")])
    #expect(try stored.size("views/big") == 1_000_006)
    #expect(try stored.bytes("views/big").count == 1_000_006)
  }
}

private enum ChangeEventPath {
  static func path(_ change: Change) -> String? {
    if case .document(_, let name) = change.subject { name.string } else { nil }
  }
}

extension StoredTree {
  func makeApp() throws {
    try makeItem("keychain/generic/app/token", "abc")
    try makeItem("keychain/generic/app/user", "peter")
  }

  func makeAppView() throws {
    try makeView("app", [(["TOKEN"], "keychain/generic/app/token"), (["USER"], "keychain/generic/app/user")])
  }

  func makeView(
    _ name: String, _ entries: [(name: [String], reference: String)], _ format: ViewFormat = .env
  ) throws {
    try tree.views?.make(ExactString(name), format, .portable, newPlace: nil, entries)
  }
}

extension Handle {
  /// Replaces the whole content, as an editor does in place.
  fileprivate func rewrite(_ text: String) throws {
    try truncate(to: 0, by: .current)
    try write(Array(text.utf8).span, at: 0, by: .current)
  }
}
