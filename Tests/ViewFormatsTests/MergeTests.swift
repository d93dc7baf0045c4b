import Platform
import SecretMemory
import Testing

@testable import ViewFormats

@Suite struct MergeTests {
  private let grammar = Grammar(format: .env)
  private let before = "# mine\nA=1\nB='x y'\nC=longsecret1\n"

  private func merge(_ text: String) throws -> ViewMerge {
    let document = try grammar.parse(before)
    let stored = try document.numberedTemplate()
    return try grammar.parse(text).merge(
      with: stored, newReference: { _ in "keychain/generic/new/\(9)" }, document.values.lender)
  }

  private func names(_ changes: [ViewMerge.Change]) -> [String] {
    changes.map { $0.entry.name[0] + " " + $0.reference }
  }

  @Test func theSameBytesAreNoChange() throws {
    let merge = try merge(before)
    #expect(merge.isUnchanged)
    #expect(merge.changed.isEmpty && merge.added.isEmpty && merge.removed.isEmpty)
  }

  @Test func changedAddedAndRemovedEntriesAreListed() throws {
    let merge = try merge("D=new\n# mine\nB='x z'\nA=1\n")
    #expect(names(merge.changed) == ["B \(Reference.path(1))"])
    #expect(names(merge.added) == ["D keychain/generic/new/9"])
    #expect(merge.removed.map(\.name) == [["C"]])
    #expect(!merge.isUnchanged)
    let values = Values(
      values: [Array("1".utf8), Array("x z".utf8), []] + (3..<10).map { _ in Array("new".utf8) })
    let file = try merge.template.render(values.lender)
    #expect(String(decoding: file.unprotected, as: UTF8.self) == "D=new\n# mine\nB='x z'\nA=1\n")
  }

  @Test func aCommentAloneChangesTheTemplateOnly() throws {
    let merge = try merge("# ours\nA=1\nB='x y'\nC=longsecret1\n")
    #expect(!merge.isUnchanged && merge.changed.isEmpty && merge.added.isEmpty && merge.removed.isEmpty)
  }

  @Test func whatOthersHaveAddedIsKept() throws {
    func kept(_ text: String, _ present: String, since base: String) throws -> String? {
      let file = try grammar.parse(text)
      guard let joined = try file.keepingAdditions(of: grammar.parse(present), since: grammar.parse(base))
      else {
        return nil
      }
      return String(decoding: joined.unprotected, as: UTF8.self)
    }
    #expect(try kept("A=2\n", "A=3\n", since: "A=1\nB=1\n") == nil)
    #expect(try kept("A=2", "A=1\nB='b b'\nC=c", since: "A=1\n") == "A=2\nB='b b'\nC=c")
    #expect(try kept("", "# x\nB='b'\n# y\n", since: "") == "B='b'\n")
    // The writer has it too: its own value is its answer.
    #expect(try kept("B=mine\n", "B=b\n", since: "") == nil)
    let json = Grammar(format: .json)
    let base = try json.parse("{\"A\": \"1\"}")
    #expect {
      _ = try base.keepingAdditions(of: json.parse("{\"A\": \"1\", \"B\": \"2\"}"), since: base)
    } throws: { ($0 as? ViewError)?.errno == .EINVAL && ($0 as? ViewError)?.entry == ["B"] }
  }

  @Test func oneItemHasOneValue() throws {
    let stored = try ViewTemplate(.env, entries: [(["A"], Reference.path(0)), (["B"], Reference.path(0))])
    let lender = Values(values: [Array("1".utf8)]).lender
    let both = try grammar.parse("A=2\nB=2\n").merge(with: stored, newReference: { _ in "x" }, lender)
    #expect(names(both.changed) == ["A \(Reference.path(0))"])
    #expect {
      _ = try grammar.parse("A=1\nB=2\n").merge(with: stored, newReference: { _ in "x" }, lender)
    } throws: { ($0 as? ViewError)?.errno == .EINVAL && ($0 as? ViewError)?.entry == ["B"] }
  }

  @Test(arguments: [
    "# C was longsecret1\nA=1\nB='x y'\nC=longsecret1\n",
    // Of an entry that the write takes away.
    "A=1\nB='x y'\n#C=longsecret1\n",
    // A new value.
    "A=1\nD=Another5ecret # Another5ecret\n",
  ]) func aValueInACommentIsEINVAL(text: String) {
    // `portable` refuses comments behind values.
    let text = text.replacing(" # ", with: "\n# ")
    #expect { _ = try merge(text) } throws: {
      ($0 as? ViewError)?.errno == .EINVAL && ($0 as? ViewError)?.line != nil
    }
  }

  /// Of a value of several lines that was commented out, and of one in another quoting.
  @Test(arguments: [
    ("K=\"-----BEGIN K-----\\nMIIabcdefghijk123\\n-----END K-----\"\n#MIIabcdefghijk123\n", 2),
    ("K='it\\'s \"a\" secret'\n# K=\"it's \\\"a\\\" secret\"\n", 2),
    ("K=pa$ss/word1!\n\n# K='pa$ss/word1!'\n", 3), ("K='pa$ss/word1!'\n# K=pa\\$ss/word1\\!\n", 2),
    ("#-----BEGIN K-----\nK=\"-----BEGIN K-----\\nMIIabcdefghijk123\\nshort line\"\n# short line\n", 0),
  ]) func aValueInAnotherFormIsFound(text: String, line: Int) throws {
    let dialect = text.contains("it\\'s") ? EnvDialect.docker : .python
    let text = dialect == .docker ? text.replacing("'it\\'s \"a\" secret'", with: "it's \"a\" secret") : text
    let document = try Grammar(format: .env, dialect: dialect).parse(text)
    let found = try document.numberedTemplate().exposures(document.values.lender)
    #expect(found.map(\.line) == (line == 0 ? [] : [line]))
  }

  @Test func plainWordsMayStandInComments() throws {
    let text = "# production listens on 5432, true\nA=production\nB=5432\nD=true\n#D=false\n"
    #expect(throws: Never.self) { _ = try merge(text) }
  }

  @Test func exposuresHaveLineAndName() throws {
    let document = try Grammar(format: .ini).parse(
      "[default]\nk = v\n# a\n# token Zm9vYmFy1\n[Zm9vYmFy1]\nt = Zm9vYmFy1\nplain = hunter\n# plain = hunter\n"
    )
    let template = try document.numberedTemplate()
    #expect(
      try template.exposures(document.values.lender) == [
        ViewExposure(line: 4, name: ["Zm9vYmFy1", "t"]), ViewExposure(line: 8, name: ["Zm9vYmFy1", "plain"]),
      ])
  }
}
