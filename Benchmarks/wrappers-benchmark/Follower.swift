import Foil
import Foundation

/// Another process, which tells what a publisher of its own tells it.
final class Follower {
  static let key = "number"
  static let suite = "benchmark.heard"
  private let process = Process()
  private let (ask, answer) = (Pipe(), Pipe())

  init() throws {
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe")
    process.arguments = ["follow"]
    (process.standardInput, process.standardOutput) = (ask, answer)
    try process.run()
    // It subscribes, and hears what is there now.
    _ = try next()
  }

  deinit {
    try? ask.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Returns when the other process has heard of `number`.
  func wait(for number: Int) throws {
    while try next() != number {}
  }

  private func next() throws -> Int {
    guard let bytes = try answer.fileHandleForReading.read(upToCount: 8), bytes.count == 8 else {
      throw CocoaError(.fileReadUnknown)
    }
    return unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(as: Int.self) }
  }

  /// The other process: it ends when its standard input does.
  static func follow() -> Never {
    let number = FoilDefaultStorage(wrappedValue: 0, key: key, userDefaults: Suite(suite))
    let subscription = number.projectedValue.sink { value in
      unsafe withUnsafeBytes(of: value) { try? FileHandle.standardOutput.write(contentsOf: Data($0)) }
    }
    withExtendedLifetime(subscription) {
      _ = try? FileHandle.standardInput.readToEnd()
    }
    exit(0)
  }
}
