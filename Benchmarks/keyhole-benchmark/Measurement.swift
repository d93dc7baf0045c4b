import Glibc

/// Times of one operation, in seconds.
struct Samples {
  private(set) var seconds: [Double]

  init(_ seconds: [Double] = []) {
    self.seconds = seconds
  }

  mutating func append(_ times: [Double]) {
    seconds += times
  }

  var median: Double { quantile(0.5) }
  var p99: Double { quantile(0.99) }

  /// 101 of them.
  var percentiles: [Double] {
    let sorted = seconds.sorted()
    return (0...100).map { Self.quantile(Double($0) / 100, of: sorted) }
  }

  private func quantile(_ part: Double) -> Double { Self.quantile(part, of: seconds.sorted()) }

  private static func quantile(_ part: Double, of sorted: [Double]) -> Double {
    guard !sorted.isEmpty else { return .nan }
    return sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))]
  }
}

typealias Operation = () throws(Failure) -> Void

/// Seconds since some moment, on a clock that never steps.
func now() -> Double {
  var time = timespec()
  unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func seconds(_ operation: Operation) throws(Failure) -> Double {
  let began = now()
  try operation()
  return now() - began
}

/// How often an operation is measured. The two sides take turns, batch by batch, so that whatever else
/// the machine does falls on both.
struct Plan {
  var rounds: Int
  var batch: Int
  /// One sample is the mean of so many calls: for what takes little longer than looking at the clock.
  var calls = 1

  func run(ours: Operation?, reference: Operation?) throws(Failure) -> (ours: Samples?, reference: Samples?) {
    var sides = (ours: ours.map { _ in Samples() }, reference: reference.map { _ in Samples() })
    for round in 0...rounds {
      let ourBatch = try ours.map(measure)
      let referenceBatch = try reference.map(measure)
      // The first batch of each only warms up.
      guard round > 0 else { continue }
      if let ourBatch { sides.ours?.append(ourBatch) }
      if let referenceBatch { sides.reference?.append(referenceBatch) }
    }
    return sides
  }

  /// The times of one batch.
  func measure(_ operation: Operation) throws(Failure) -> [Double] {
    var times: [Double] = []
    for _ in 0..<batch {
      let time = try seconds { () throws(Failure) in
        for _ in 0..<calls { try operation() }
      }
      times.append(time / Double(calls))
    }
    return times
  }
}
