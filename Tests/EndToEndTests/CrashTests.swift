import Glibc
import Synchronization
import TestSupport
import Testing

/// Section 5: once close has returned, the value survives `kill -9` of the file system's process.
///
/// Writers change settings and secrets as fast as they can, each its own; at a random moment the process is killed
/// and started again. Every writer knows what was acknowledged and what was under way: one of the two has to be there.
@Suite(.timeLimit(.minutes(10))) struct CrashTests {
  static let rounds = 100

  @Test(arguments: [20_260_721] as [UInt64])
  func acknowledgedValuesSurviveKillsInAStorm(seed: UInt64) async throws {
    try await withKeyhole { keyhole in
      let writers = Writer.all(keyhole, seed: seed)
      for writer in writers { try writer.prepare() }
      // One quiet round shows which files there are when nothing goes wrong.
      for writer in writers { for _ in 0..<4 { try writer.step() } }
      try keyhole.remount()
      for writer in writers { try writer.step() }
      let present = writers.map(\.present)
      try keyhole.unmount()
      let expected = Self.files(keyhole)
      try keyhole.start()

      var random = SplitMix64(seed: seed)
      for round in 0..<Self.rounds {
        let delay = Int.random(in: 0...120, using: &random)
        let failures = try Storm(writers).run(killing: keyhole, after: .milliseconds(delay))
        #expect(failures.isEmpty, "round \(round) of seed \(seed)")
        try keyhole.start()
        for writer in writers {
          try writer.verify("round \(round) of seed \(seed), killed after \(delay) ms")
        }
      }
      // The remains of a killed process are gone after the next write, in the settings as in the vault.
      for (writer, present) in zip(writers, present) {
        repeat { try writer.step() } while writer.present != present
      }
      try keyhole.unmount()
      #expect(Self.files(keyhole) == expected)
      try keyhole.start()
      for writer in writers { try writer.verify("the end of seed \(seed)") }
      let doctor = try keyhole.world.sh("keyhole doctor")
      #expect(doctor.status == 0, "\(doctor)")
      // How much of a storm it was: a test that acknowledges nothing proves nothing.
      let acknowledged = writers.map(\.acknowledged)
      let total = acknowledged.reduce(0, +)
      #expect(acknowledged.allSatisfy { $0 > 0 } && total > 2 * Self.rounds, "\(acknowledged)")
    }
  }

  /// The files of all stores.
  static func files(_ keyhole: MountedKeyhole) -> Set<String> {
    let world = keyhole.world
    var result: Set<String> = []
    for folder in [world.config, world.data, world.state, world.runtime] {
      result.formUnion(System.files(below: folder).map { "\(folder.dropFirst(world.root.count))/\($0)" })
    }
    // The history of settings grows with what was killed.
    return result.filter { !$0.contains("/state/keyhole/history/") }
  }
}

/// Runs writers on threads of their own until the file system is gone.
private final class Storm: Sendable {
  private let writers: [Writer]
  private let isOver = Atomic(false)
  private let failures = Mutex<[String]>([])

  init(_ writers: [Writer]) {
    self.writers = writers
  }

  /// Failures before the kill, of which there are none.
  func run(killing keyhole: MountedKeyhole, after delay: Duration) throws -> [String] {
    let threads = writers.map { writer in
      Thread { [self] in
        while true {
          let error = failure { try writer.step() }
          guard let error else { continue }
          // From the kill on, everything fails.
          if !isOver.load(ordering: .acquiring) {
            failures.withLock { $0.append("\(writer.name): \(error)") }
          }
          return
        }
      }
    }
    // A moment, not a pause: the random time at which the process is killed.
    _ = poll(nil, 0, Deadline(in: delay).milliseconds)
    isOver.store(true, ordering: .releasing)
    try keyhole.kill()
    for thread in threads { thread.join() }
    return failures.withLock { $0 }
  }
}

/// One writer of the storm: things in the tree that only it changes, and what they may be now.
private final class Writer: Sendable {
  /// The content of each path; nil: it is not there. `PATH@NAME` is an attribute.
  typealias Picture = [String: String?]

  struct Change {
    /// The state after the change was acknowledged.
    let after: Picture
    /// Other states that a crash may leave: where SPECIFICATION.md says that a change has a middle.
    var between: [Picture] = []
    let perform: @Sendable () throws -> Void
  }

  typealias Next = @Sendable (Picture, Int, inout SplitMix64) -> Change

  private struct State {
    var number = 0
    var acknowledged: Picture
    var possible: [Picture] = []
    var count = 0
    var random: SplitMix64
  }

  let name: String
  private let keyhole: MountedKeyhole
  private let paths: [String]
  private let state: Mutex<State>
  private let next: Next

  init(_ name: String, _ keyhole: MountedKeyhole, seed: UInt64, paths: [String], next: @escaping Next) {
    self.name = name
    self.keyhole = keyhole
    self.paths = paths
    self.next = next
    let nothing = Picture(uniqueKeysWithValues: paths.map { ($0, nil) })
    state = Mutex(State(acknowledged: nothing, random: SplitMix64(seed: seed)))
  }

  /// How many changes have been acknowledged.
  var acknowledged: Int { state.withLock { $0.count } }

  /// Which of its paths are there.
  var present: Set<String> { state.withLock { Set($0.acknowledged.filter { $0.value != nil }.keys) } }

  func prepare() throws {
    for path in paths { try makeFolders(of: path, in: keyhole) }
  }

  /// One change, noted before it begins and after it has been acknowledged.
  func step() throws {
    let change = state.withLock { state in
      state.number += 1
      let change = next(state.acknowledged, state.number, &state.random)
      state.possible = change.between + [change.after]
      return change
    }
    try change.perform()
    state.withLock { state in
      state.acknowledged = change.after
      state.possible = []
      state.count += 1
    }
  }

  /// Looks at what is there, which has to be what was acknowledged or what was under way, and goes on from it.
  func verify(_ comment: String) throws {
    var found: Picture = [:]
    for path in paths { found.updateValue(try look(path), forKey: path) }
    let problem = state.withLock { state -> String? in
      let allowed = [state.acknowledged] + state.possible
      state.acknowledged = found
      state.possible = []
      guard !allowed.contains(found) else { return nil }
      return "allowed \(allowed.map(Self.brief).joined(separator: " or ")), found \(Self.brief(found))"
    }
    if let problem { Issue.record("\(name), \(comment): \(problem)") }
  }

  private func look(_ path: String) throws -> String? {
    let parts = path.split(separator: "@").map(String.init)
    let place = keyhole / parts[0]
    var content: String?
    let error = failure {
      content = parts.count == 1 ? try System.text(place) : try System.attribute(place, parts[1])
    }
    if let error, error != .missing, error != .noData { throw error }
    return content
  }

  private static func brief(_ picture: Picture) -> String {
    let parts = picture.sorted { $0.key < $1.key }.map { path, content in
      "\(path)=\(content.map { "\($0.utf8.count) bytes \($0.prefix(24).debugDescription)" } ?? "none")"
    }
    return "(\(parts.joined(separator: " ")))"
  }
}

/// Never the fixed ones: where the file system is gone, they would come into being in the folder under it.
private func makeFolders(of path: String, in keyhole: MountedKeyhole) throws {
  let parts = path.split(separator: "/").dropLast()
  for count in (path.hasPrefix("defaults") ? 2 : 3)...parts.count {
    let folder = keyhole / parts.prefix(count).joined(separator: "/")
    let error = failure { try System.mkdir(folder) }
    if let error, error != .exists { throw error }
  }
}

extension Writer {
  static func all(_ keyhole: MountedKeyhole, seed: UInt64) -> [Writer] {
    [
      value("an integer", keyhole, seed, "defaults/storm/integer") { number, _ in "\(number)" },
      value("another integer of the suite", keyhole, seed, "defaults/storm/other") { number, _ in "\(-number)"
      },
      value("a text of many sizes", keyhole, seed, "defaults/texts/text") { number, random in
        "text \(number) " + String(repeating: "x", count: Int.random(in: 0...100_000, using: &random))
      },
      value("a secret", keyhole, seed, "keychain/generic/storm/one/value") { number, _ in "secret \(number)"
      },
      value("a secret of many sizes", keyhole, seed, "keychain/generic/storm/two/value") { number, random in
        "secret \(number) " + String(repeating: "y", count: Int.random(in: 0...100_000, using: &random))
      },
      fleeting("a key that comes and goes", keyhole, seed, "defaults/storm/fleeting"),
      fleeting("an item that comes and goes", keyhole, seed, "keychain/generic/storm/fleeting/value"),
      synced(keyhole, seed), attributes(keyhole, seed), movingKey(keyhole, seed), movingItem(keyhole, seed),
      renamedSuite(keyhole, seed),
    ]
  }

  /// The value of a content.
  private static func shown(_ content: String, _ path: String) -> String {
    path.hasPrefix("defaults") ? content + "\n" : content
  }

  /// Writes a new value, and waits for the close.
  private static func value(
    _ name: String, _ keyhole: MountedKeyhole, _ seed: UInt64, _ path: String,
    content: @escaping @Sendable (Int, inout SplitMix64) -> String
  ) -> Writer {
    Writer(name, keyhole, seed: seed, paths: [path]) { now, number, random in
      let content = content(number, &random)
      return Change(after: [path: shown(content, path)], between: createdEmpty(path, now)) {
        try System.write(keyhole / path, content)
      }
    }
  }

  /// A key is there, empty, from its creation on; an item only from its first value on.
  private static func createdEmpty(_ path: String, _ now: Picture) -> [Picture] {
    path.hasPrefix("defaults") && now[path] == .some(nil) ? [[path: ""]] : []
  }

  private static func fleeting(
    _ name: String, _ keyhole: MountedKeyhole, _ seed: UInt64, _ path: String
  ) -> Writer {
    Writer(name, keyhole, seed: seed, paths: [path]) { now, number, _ in
      if now[path] != .some(nil) {
        return Change(after: [path: nil]) { try System.unlink(keyhole / path) }
      }
      let content = "here \(number)"
      return Change(after: [path: shown(content, path)], between: createdEmpty(path, now)) {
        // An item whose secret went is staged, and a staged one does not outlive its mount.
        try makeFolders(of: path, in: keyhole)
        try System.write(keyhole / path, content)
      }
    }
  }

  /// Says fsync, as a database does, and is acknowledged by that.
  private static func synced(_ keyhole: MountedKeyhole, _ seed: UInt64) -> Writer {
    let path = "defaults/storm/synced"
    return Writer("a synced value", keyhole, seed: seed, paths: [path]) { now, number, _ in
      Change(after: [path: "synced \(number)\n"], between: createdEmpty(path, now)) {
        let file = try OpenFile(keyhole / path, O_WRONLY | O_CREAT | O_TRUNC)
        try file.write("synced \(number)")
        try file.sync()
      }
    }
  }

  /// An item's secret and an attribute in turn.
  private static func attributes(_ keyhole: MountedKeyhole, _ seed: UInt64) -> Writer {
    let path = "keychain/generic/storm/attributes/value", comment = path + "@user.comment"
    return Writer("an item's attributes", keyhole, seed: seed, paths: [path, comment]) { now, number, _ in
      var after = now
      if number % 2 == 0, now[path] != .some(nil) {
        after.updateValue("comment \(number)", forKey: comment)
        return Change(after: after) {
          try System.setAttribute(keyhole / path, "user.comment", "comment \(number)")
        }
      }
      after.updateValue("with attributes \(number)", forKey: path)
      return Change(after: after) { try System.write(keyhole / path, "with attributes \(number)") }
    }
  }

  /// Moves a key between two suites. Those are two stores, so a crash may leave it in both, and never in none.
  private static func movingKey(_ keyhole: MountedKeyhole, _ seed: UInt64) -> Writer {
    let one = "defaults/storm/moving", two = "defaults/texts/moved"
    return Writer("a key that moves", keyhole, seed: seed, paths: [one, two]) { now, number, _ in
      guard let from = [one, two].first(where: { now[$0] != .some(nil) }), let content = now[from] else {
        return Change(after: [one: "moving \(number)\n", two: nil], between: [[one: "", two: nil]]) {
          try System.write(keyhole / one, "moving \(number)")
        }
      }
      let to = from == one ? two : one
      return Change(after: [from: nil, to: content], between: [[from: content, to: content]]) {
        try System.rename(keyhole / from, keyhole / to)
      }
    }
  }

  /// Moves an item between two services of one keychain.
  private static func movingItem(_ keyhole: MountedKeyhole, _ seed: UInt64) -> Writer {
    let one = "keychain/generic/storm/moving/value", two = "keychain/generic/moved/moving/value"
    return Writer("an item that moves", keyhole, seed: seed, paths: [one, two]) { now, number, _ in
      guard let from = [one, two].first(where: { now[$0] != .some(nil) }), let content = now[from] else {
        return Change(after: [one: "moving \(number)", two: nil]) {
          try makeFolders(of: one, in: keyhole)
          try System.write(keyhole / one, "moving \(number)")
        }
      }
      let to = from == one ? two : one
      return Change(after: [from: nil, to: content]) {
        // The other place may have its folder staged, which a rename replaces, or no service any more.
        try makeFolders(of: to, in: keyhole)
        try System.rename(String((keyhole / from).dropLast(6)), String((keyhole / to).dropLast(6)))
      }
    }
  }

  /// Renames a suite, and with it its file. Two suites are two stores, so that a crash may leave both.
  private static func renamedSuite(_ keyhole: MountedKeyhole, _ seed: UInt64) -> Writer {
    let one = "defaults/renamed-a/k", two = "defaults/renamed-b/k"
    return Writer("a suite that is renamed", keyhole, seed: seed, paths: [one, two]) { now, number, _ in
      let present = [one, two].filter { now[$0] != .some(nil) }
      guard let from = present.first, let content = now[from] else {
        return Change(after: [one: "suite \(number)\n", two: nil], between: [[one: "", two: nil]]) {
          try makeFolders(of: one, in: keyhole)
          try System.write(keyhole / one, "suite \(number)")
        }
      }
      if present.count == 2 {
        return Change(after: [one: content, two: nil]) { try System.unlink(keyhole / two) }
      }
      let to = from == one ? two : one
      return Change(after: [from: nil, to: content], between: [[from: content, to: content]]) {
        try System.rename(String((keyhole / from).dropLast(2)), String((keyhole / to).dropLast(2)))
      }
    }
  }
}
