import Synchronization

/// Numbers for values, unique in the process.
enum ValueVersion {
  private static let last = Atomic<UInt64>(0)

  static func next() -> UInt64 {
    last.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
