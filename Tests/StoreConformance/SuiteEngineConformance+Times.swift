import Dispatch
import Model
import Store
import Synchronization

extension SuiteEngineConformance {
  static let times: [Case] = [
    Case(description: "a change gives its key a time, and no other") { engine in
      _ = try engine.create("a")
      let first = try engine.set(["x": .integer(1), "y": .integer(1)], in: "a")
      let second = try engine.set(["x": .integer(2)], in: "a")
      try require(first.settings.values.allSatisfy { $0.modified != nil }, "times are filled in")
      try require(second.settings["y"] == first.settings["y"], "y keeps its time")
      let times = (first.settings["x"]?.modified, second.settings["x"]?.modified)
      guard case (let before?, let after?) = times else { return try require(false, "times") }
      try require(after > before, "x gets a new one")
      try require(engine.read("a")?.settings == second.settings, "reading tells the same")
    },
    Case(description: "a time can be set, with a value and alone") { engine in
      _ = try engine.create("a")
      let early = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)
      let late = Timestamp(seconds: -5, nanoseconds: 1)
      _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: early) }
      try require(engine.read("a")?.settings["x"]?.modified == early, "with the value")
      let stamp = try engine.stamp(of: "a")
      let result = try engine.update("a", known: nil) { $0.settings["x"]?.modified = late }
      try require(result.settings["x"]?.modified == late, "told at once")
      try require(engine.read("a")?.settings["x"] == Setting(.bool(true), modified: late), "alone")
      try require(engine.stamp(of: "a") == stamp, "the values are not written again")
    },
    Case(description: "times go with a renamed suite, and not to a new one of its name") { engine in
      _ = try engine.create("a")
      let time = Timestamp(seconds: 1_000_000_000)
      _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: time) }
      try engine.rename("a", to: "b")
      try require(engine.read("b")?.settings["x"]?.modified == time, "b has them")
      _ = try engine.create("a")
      try engine.set(["x": .bool(true)], in: "a")
      try require(engine.read("a")?.settings["x"]?.modified != time, "a has its own")
    },
    Case(description: "a key that was removed and set again has a new time") { engine in
      _ = try engine.create("a")
      let time = Timestamp(seconds: 1_000_000_000)
      _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: time) }
      try engine.set([:], remove: ["x"], in: "a")
      try engine.set(["x": .bool(true)], in: "a")
      try require(engine.read("a")?.settings["x"]?.modified != time, "not the old one")
    },
  ]

  static let concurrency: [Case] = [
    Case(description: "writers of different keys all win") { engine in
      _ = try engine.create("a")
      let failures = Mutex<[String]>([])
      DispatchQueue.concurrentPerform(iterations: 4) { writer in
        do {
          for round in 0..<25 {
            try engine.set([ExactString("\(writer)-\(round)"): .integer(Int128(round))], in: "a")
          }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
      try require(failures.withLock { $0 } == [], "no writer fails")
      try require(engine.read("a")?.settings.count == 100, "every key is there")
    },
    Case(description: "a counter loses no step") { engine in
      _ = try engine.create("a")
      try engine.set(["n": .integer(0)], in: "a")
      let failures = Mutex<[String]>([])
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        do {
          for _ in 0..<25 {
            _ = try engine.update("a", known: nil) { contents throws(StoreError) in
              guard case .integer(let n)? = contents.settings["n"]?.value else { throw .damaged(what: "n") }
              contents.settings["n"] = Setting(.integer(n + 1))
            }
          }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
      try require(failures.withLock { $0 } == [], "no writer fails")
      try require(engine.values(of: "a") == ["n": .integer(100)], "all steps count")
    },
  ]
}
