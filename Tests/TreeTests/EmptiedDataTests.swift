import Model
import Store
import StoreConformance
import Testing
import Tree

/// Data that is emptied stays data; a key that was created empty takes the type of its first content.
@Suite struct EmptiedDataTests {
  private func emptied() throws -> TreeFixture {
    let fixture = TreeFixture(["k": .data([1]), "touched": .data([])])
    try fixture.tree.truncate(fixture.node("defaults/s/k"), to: 0, by: .current)
    return fixture
  }

  @Test func emptiedDataStaysData() throws {
    let fixture = try emptied()
    for key in ["k", "touched"] { try fixture.write("defaults/s/\(key)", "12\n") }
    #expect(try fixture.stored("k") == .data(Array("12\n".utf8)))
    #expect(try fixture.stored("touched") == .integer(12))
  }

  @Test func emptiedDataStaysDataUnderAnotherName() throws {
    let fixture = try emptied()
    try fixture.rename("defaults/s/k", "defaults/s/l")
    try fixture.rename("defaults/s", "defaults/t")
    try fixture.write("defaults/t/l", "12\n")
    #expect(try fixture.stored("l", in: "t") == .data(Array("12\n".utf8)))
  }

  @Test func newKeyOfItsOldNameIsNew() throws {
    let fixture = try emptied()
    try fixture.rename("defaults/s/k", "defaults/s/l")
    try fixture.create("defaults/s/k").finish()
    try fixture.write("defaults/s/k", "12\n")
    #expect(try fixture.stored("k") == .integer(12))
    try fixture.rename("defaults/s/touched", "defaults/s/l")
    try fixture.write("defaults/s/l", "12\n")
    #expect(try fixture.stored("l") == .integer(12))
  }
}
