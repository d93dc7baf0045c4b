import Model
import Store
import Synchronization

extension SuiteEngineConformance {
  static let lifetimes: [Case] = [
    Case(description: "what is missing is nil or empty") { engine in
      try require(engine.suites().isEmpty, "no suites")
      for name in ["a", "", "a/b", ExactString(String(repeating: "x", count: 300))] as [ExactString] {
        try require(engine.read(name) == nil && engine.stamp(of: name) == nil, "\(name) is missing")
        try require(.notFound) { try engine.set([:], in: name) }
        try require(.notFound) { try engine.remove(name) }
        try require(.notFound) { try engine.rename(name, to: "b") }
        try engine.synchronize(name)
      }
    },
    Case(description: "a suite is made empty, found, renamed and removed") { engine in
      let made = try engine.create("a b.c")
      try require(made.settings.isEmpty && made.readOnly == nil, "made empty and writable")
      try require(made.stamp == engine.stamp(of: "a b.c"), "its stamp is the stored one")
      try require(engine.suites() == ["a b.c": made.stamp], "it is listed with its stamp")
      try engine.rename("a b.c", to: "ü")
      try require(Array(engine.suites().keys) == ["ü"], "listed under its new name only")
      try engine.remove("ü")
      try require(engine.suites().isEmpty, "gone")
    },
    Case(description: "names that can't be are refused") { engine in
      _ = try engine.create("a")
      for name in ["", "a/b", "/", "a\0b"] as [ExactString] {
        try require(.invalidName(reason: "")) { _ = try engine.create(name) }
        try require(.invalidName(reason: "")) { try engine.rename("a", to: name) }
      }
      let long = ExactString(String(repeating: "x", count: 250))
      try require(.nameTooLong) { _ = try engine.create(long) }
      try require(.nameTooLong) { try engine.rename("a", to: long) }
      try require(Array(engine.suites().keys) == ["a"], "nothing else was made")
    },
    Case(description: "odd names are names") { engine in
      let names: [ExactString] = [
        ".", "..", ".hidden", " ", "a\nb", "e\u{301}", "é", "😀", "%2F", "-", "A", "x.plist",
        ExactString(String(repeating: "y", count: 249)),
      ]
      for name in names { _ = try engine.create(name) }
      for name in names { try engine.set(["k": .string(name)], in: name) }
      for name in names {
        try require(engine.values(of: name) == ["k": .string(name)], "\(name) holds its own")
      }
      try require(Set(engine.suites().keys) == Set(names), "all are listed")
    },
    Case(description: "a taken name is refused") { engine in
      _ = try engine.create("a")
      _ = try engine.create("b")
      try engine.set(["k": .bool(true)], in: "b")
      try require(.exists) { _ = try engine.create("a") }
      try require(.exists) { try engine.rename("a", to: "b") }
      try require(engine.values(of: "b") == ["k": .bool(true)], "b is as it was")
      try engine.rename("a", to: "a")
      try require(engine.read("a") != nil, "a is still there")
    },
    Case(description: "a suite that holds keys is not removed") { engine in
      _ = try engine.create("a")
      try engine.set(["k": .integer(1)], in: "a")
      try require(.notEmpty) { try engine.remove("a") }
      try engine.set([:], remove: ["k"], in: "a")
      try engine.remove("a")
      try require(engine.read("a") == nil, "removed when empty")
    },
    Case(description: "a disk has room") { engine in
      let room = try engine.room()
      try require(room.blockSize > 0 && room.blocks >= room.freeBlocks, "sensible numbers")
      try require(engine.problems().isEmpty, "an empty folder has no problems")
    },
  ]

  static let contents: [Case] = [
    Case(description: "every type is kept exactly") { engine in
      _ = try engine.create("a")
      try engine.set(SettingSamples.all, in: "a")
      let values = try engine.values(of: "a") ?? [:]
      for (key, value) in SettingSamples.all {
        try require(values[key] == value, "\(key) is kept")
      }
      try require(values.count == SettingSamples.all.count, "nothing else is there")
    },
    Case(description: "an update sees what is stored, and stores what it leaves") { engine in
      _ = try engine.create("a")
      try engine.set(["x": .integer(1), "y": .integer(2)], in: "a")
      let result = try engine.update("a", known: nil) { contents throws(StoreError) in
        guard contents.settings["x"]?.value == .integer(1) else { throw .damaged(what: "x") }
        contents.settings["x"] = nil
        contents.settings["z"] = Setting(.integer(3))
      }
      try require(result.settings.mapValues(\.value) == ["y": .integer(2), "z": .integer(3)], "the result")
      try require(engine.values(of: "a") == ["y": .integer(2), "z": .integer(3)], "what is stored")
      try require(result.stamp == engine.stamp(of: "a"), "the result's stamp is the stored one")
    },
    Case(description: "an update that throws changes nothing") { engine in
      _ = try engine.create("a")
      let before = try engine.set(["x": .integer(1)], in: "a")
      try require(.noSuchAttribute) {
        _ = try engine.update("a", known: before) { contents throws(StoreError) in
          contents.settings = [:]
          throw .noSuchAttribute
        }
      }
      try require(engine.values(of: "a") == ["x": .integer(1)], "as it was")
      try require(engine.stamp(of: "a") == before.stamp, "not even written")
    },
    Case(description: "an equal value is no write") { engine in
      _ = try engine.create("a")
      let before = try engine.set(["x": .real(.nan), "y": .real(-0.0), "s": .string("é")], in: "a")
      let after = try engine.set(["x": .real(.nan), "y": .real(-0.0), "s": .string("é")], in: "a")
      try require(after.stamp == before.stamp, "same stamp")
      try require(after.settings == before.settings, "same times")
      let other = try engine.set(["y": .real(0.0), "s": .string("e\u{301}")], in: "a")
      try require(other.stamp != before.stamp, "a value that differs in its bits only is a change")
      try require(engine.values(of: "a")?["s"] == .string("e\u{301}"), "and is stored")
    },
    Case(description: "known contents spare a read, stale ones are not believed") { engine in
      _ = try engine.create("a")
      let first = try engine.set(["x": .integer(1)], in: "a")
      let second = try engine.set(["y": .integer(2)], in: "a", known: first)
      try engine.set(["z": .integer(3)], in: "a", known: first)
      try require(second.settings.count == 2, "built on the known")
      try require(engine.read("a")?.settings.count == 3, "nothing of the second update is lost")
    },
  ]
}
