import Model
import Testing
import Tree

/// Lookups and FORGETs of the kernel, in any order: a file has one number as long as it has its name.
@Suite(.timeLimit(.minutes(1))) struct ForgottenNodesTests {
  private static func name(_ number: Int) -> String { "key \(number)" }

  @Test func numbersStayInAnyOrderOfLookupsAndForgets() throws {
    let names = (0..<600).map(Self.name)
    let fixture = TreeFixture(Dictionary(uniqueKeysWithValues: names.map { (ExactString($0), .bool(true)) }))
    var numbers: [String: UInt64] = [:]
    var known: [(name: String, node: Node)] = []
    for step in 0..<20_000 {
      if Bool.random() || known.isEmpty, let name = names.randomElement() {
        let node = try fixture.lookUp("defaults/s/" + name)
        #expect(numbers.updateValue(node.number, forKey: name) ?? node.number == node.number)
        known.append((name, node))
      } else {
        let (name, node) = known.remove(at: Int.random(in: known.indices))
        #expect(fixture.tree.node(node.number) === node)
        let isLast = !known.contains { $0.name == name }
        #expect(fixture.forget(node) == isLast && (fixture.tree.node(node.number) == nil) == isLast)
      }
      // All of them, now and then.
      if step.isMultiple(of: 4000) {
        while let (_, node) = known.popLast() { _ = fixture.forget(node) }
      }
    }
    let listed = try fixture.numbers("defaults/s")
    #expect(Set(listed.values).count == names.count && numbers.allSatisfy { listed[$0.key] == $0.value })
  }

  @Test func whatWasNotLookedUpSinceTheLastTimeIsUnused() throws {
    let fixture = TreeFixture(["k": .bool(true), "l": .bool(true)])
    for path in ["defaults", "defaults/s", "defaults/s/k", "defaults/s/l"] { _ = try fixture.lookUp(path) }
    let first = fixture.tree.takeUnusedNodes()
    #expect(first.unused.isEmpty && first.used == 4)
    _ = try fixture.lookUp("defaults/s/l")
    let (unused, used) = fixture.tree.takeUnusedNodes()
    // The files of a directory come before it.
    #expect(unused.map(\.path) == ["defaults/s/k", "defaults/s", "defaults"] && used == 1)
  }

  @Test func whatTheKernelDoesNotKnowIsNotUnused() throws {
    let fixture = TreeFixture(["k": .bool(true)])
    #expect(fixture.forget(try fixture.lookUp("defaults/s/k")))
    _ = try fixture.node("defaults/s/k")
    let (unused, used) = fixture.tree.takeUnusedNodes()
    #expect(unused.isEmpty && used == 0)
  }

  @Test func aFileThatIsBeingWrittenKeepsItsNode() throws {
    let fixture = TreeFixture(["k": .string("a")])
    let node = try fixture.lookUp("defaults/s/k")
    let handle = try fixture.open("defaults/s/k", .write)
    #expect(fixture.forget(node) && fixture.tree.node(node.number) === node && node.isBeingWritten)
    handle.close()
    #expect(fixture.forget(try fixture.lookUp("defaults/s/k")) && fixture.tree.node(node.number) == nil)
  }
}
