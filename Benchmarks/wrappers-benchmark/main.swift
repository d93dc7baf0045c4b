// The cost of a get and a set of the wrappers beside Foundation's UserDefaults, in one run.
//
//   wrappers-benchmark [--check] [--quick] [--mount PATH --keyhole PROGRAM]
//   wrappers-benchmark follow     (the other process of the last rows)
//
// It uses $XDG_CONFIG_HOME, which has to be a folder of its own, shown by the mount where one is named. Each number is the lower quartile of rounds in which
// the sides take turns, in nanoseconds.
import Foil
import Foundation
import UserDefault

if CommandLine.arguments.contains("follow") { Follower.follow() }

let isQuick = CommandLine.arguments.contains("--quick")
let rounds = isQuick ? 3 : 15

/// Makes what is measured without a use count.
@inline(never) func consume<Value>(_ value: Value) {}

struct Side {
  let name: String
  let calls: Int
  let body: (Int) -> Void
}

/// The lower quartiles of all sides, in nanoseconds a call: what other programs do meanwhile counts less.
func measure(_ sides: [Side]) -> [Double] {
  var samples = [[Double]](repeating: [], count: sides.count)
  for round in 0..<rounds {
    for (index, side) in sides.enumerated() {
      let calls = isQuick ? max(1, side.calls / 20) : side.calls
      let time = ContinuousClock().measure {
        for call in 0..<calls { side.body(round * calls + call) }
      }
      let nanoseconds = Double(time.components.seconds) * 1e9 + Double(time.components.attoseconds) / 1e9
      samples[index].append(nanoseconds / Double(calls))
    }
  }
  return samples.map { $0.sorted()[$0.count / 4] }
}

var missed = 0

@MainActor func report(_ what: String, _ ours: Double, _ name: String, _ theirs: Double, atMost limit: Double)
{
  let ratio = ours / theirs
  let isMet = ratio <= limit
  if !isMet { missed += 1 }
  let text = [
    what.padding(toLength: 38, withPad: " ", startingAt: 0), String(format: "%11.0f ns", ours),
    String(format: "%11.0f ns", theirs), name.padding(toLength: 30, withPad: " ", startingAt: 0),
    String(format: "%5.2f of %4.2f", ratio, limit), isMet ? "met" : "MISSED",
  ]
  print(text.joined(separator: "  "))
}

/// A suite with as many keys, written by Foundation.
func suite(_ keys: Int) -> UserDefaults {
  guard let defaults = UserDefaults(suiteName: "benchmark.\(keys)") else { fatalError("no suite") }
  for key in 0..<keys { defaults.set("value \(key)", forKey: "key\(key)") }
  defaults.set(1, forKey: "number")
  defaults.synchronize()
  return defaults
}

let few = suite(10)
let foil = FoilDefaultStorage(wrappedValue: 0, key: "number", userDefaults: Suite("benchmark.10"))
let user = UserDefault(wrappedValue: 0, "number", defaults: Suite("benchmark.10"))
let text = FoilDefaultStorage(wrappedValue: "", key: "key1", userDefaults: Suite("benchmark.10"))
guard foil.wrappedValue == 1, user.wrappedValue == 1, text.wrappedValue == "value 1" else {
  fatalError("the wrappers do not read what Foundation wrote")
}

let gets = measure([
  Side(name: "Foundation", calls: 20_000) { _ in consume(few.integer(forKey: "number")) },
  Side(name: "Foil", calls: 20_000) { _ in consume(foil.wrappedValue) },
  Side(name: "UserDefault", calls: 20_000) { _ in consume(user.wrappedValue) },
  Side(name: "Foundation, string", calls: 20_000) { _ in consume(few.string(forKey: "key1")) },
  Side(name: "Foil, string", calls: 20_000) { _ in consume(text.wrappedValue) },
])
report("get, Foil", gets[1], "UserDefaults", gets[0], atMost: 0.2)
report("get, UserDefault", gets[2], "UserDefaults", gets[0], atMost: 0.2)
report("get of a string, Foil", gets[4], "UserDefaults", gets[3], atMost: 0.2)
report(
  "get, Foil and UserDefault", max(gets[1], gets[2]), "the faster of the two", min(gets[1], gets[2]),
  atMost: 2)

for keys in [10, 1000] {
  let theirs = suite(keys)
  let ours = FoilDefaultStorage(
    wrappedValue: 0, key: "number", userDefaults: Suite("benchmark.\(keys).ours"))
  for key in 0..<keys {
    FoilDefaultStorage(wrappedValue: "", key: "key\(key)", userDefaults: Suite("benchmark.\(keys).ours"))
      .wrappedValue = "value \(key)"
  }
  let sets = measure([
    Side(name: "Foundation", calls: 50) { call in
      theirs.set(call, forKey: "number")
      theirs.synchronize()
    },
    Side(name: "Foil", calls: 50) { call in ours.wrappedValue = call },
  ])
  report("set, suite of \(keys)", sets[1], "UserDefaults, synchronized", sets[0], atMost: 1)
}

// The delay until a wrapper in another process has a change, made when it had the one before.
let follower = try Follower()
var number = 0

@MainActor func hear(_ source: String, _ change: (Int) throws -> Void) throws {
  try hearSince(source) { number in
    let start = ContinuousClock.now
    try change(number)
    return start
  }
}

/// `change` says from when the time counts.
@MainActor func hearSince(_ source: String, _ change: (Int) throws -> ContinuousClock.Instant) throws {
  var times: [Double] = []
  for _ in 0..<(isQuick ? 30 : 300) {
    number += 1
    let start = try change(number)
    try follower.wait(for: number)
    let time = start.duration(to: .now)
    times.append(Double(time.components.seconds) * 1e9 + Double(time.components.attoseconds) / 1e9)
  }
  times.sort()
  let p99 = times[times.count * 99 / 100]
  report("\(source) to a wrapper, median", times[times.count / 2], "the target", 2_000_000, atMost: 1)
  report("\(source) to a wrapper, p99", p99, "the target", 20_000_000, atMost: 1)
}

let heard = UserDefaults(suiteName: Follower.suite)
try hear("UserDefaults") { number in
  heard?.set(number, forKey: Follower.key)
  heard?.synchronize()
}
let wrapper = FoilDefaultStorage(wrappedValue: 0, key: Follower.key, userDefaults: Suite(Follower.suite))
try hear("wrapper") { number in wrapper.wrappedValue = number }

/// Runs a program to its end, by posix_spawn(3): Foundation's Process waits some time longer.
func run(_ arguments: [String]) throws {
  var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
  defer { unsafe words.forEach { unsafe free($0) } }
  var process: pid_t = 0
  let code = unsafe posix_spawn(&process, arguments[0], nil, nil, &words, environ)
  guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
  while waitpid(process, nil, 0) < 0, errno == EINTR {}
}

/// The argument behind an option.
func option(_ name: String) -> String? {
  CommandLine.arguments.firstIndex(of: name).map { CommandLine.arguments[$0 + 1] }
}

if let mount = option("--mount"), let keyhole = option("--keyhole") {
  let path = "defaults/\(Follower.suite)/\(Follower.key)"
  try hear("echo on the mount") { number in
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: mount + "/" + path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data("\(number)\n".utf8))
    try file.close()
  }
  // From the command's end: its start takes longer than the change.
  try hearSince("keyhole set") { number in
    try run([keyhole, "set", path, "\(number)"])
    return ContinuousClock.now
  }
}

exit(missed > 0 && CommandLine.arguments.contains("--check") ? 1 : 0)
