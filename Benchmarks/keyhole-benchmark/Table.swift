/// The target for one row.
enum Target {
  case ratio(Double)
  /// The median, and what 99 of 100 stay below.
  case seconds(Double, p99: Double? = nil)
}

/// One line of the table.
struct Row {
  var what: String
  var ours = ""
  var ourP99 = ""
  var reference = ""
  var theirs = ""
  var theirP99 = ""
  var ratio = ""
  var target = ""
  /// `nil` where there is nothing to hold it against.
  var isMet: Bool?
  /// The times of each side, by its name: for plots.
  var samples: [(side: String, Samples)] = []

  var columns: [String] {
    [what, ours, ourP99, reference, theirs, theirP99, ratio, target, isMet.map { $0 ? "yes" : "NO" } ?? ""]
  }

  static let header = ["operation", "ours", "p99", "reference", "median", "p99", "ratio", "target", "met"]

  init(
    _ what: String, ours: Samples?, reference: (name: String, samples: Samples?)? = nil,
    target: Target? = nil
  ) {
    self.what = what
    if let ours {
      self.ours = time(ours.median)
      ourP99 = time(ours.p99)
      samples.append(("Keyhole", ours))
    }
    if let reference, let samples = reference.samples {
      self.reference = reference.name
      theirs = time(samples.median)
      theirP99 = time(samples.p99)
      self.samples.append((reference.name, samples))
      if let ours { ratio = fixed(ours.median / samples.median, digits: 2) }
    }
    switch target {
    case .ratio(let limit):
      self.target = "≤ \(fixed(limit, digits: 1))×"
      if let ours, let samples = reference?.samples { isMet = ours.median <= limit * samples.median }
    case .seconds(let limit, let p99):
      self.target = "≤ \(time(limit))" + (p99.map { ", \(time($0))" } ?? "")
      isMet = ours.map { $0.median <= limit && $0.p99 <= p99 ?? .infinity }
    case nil:
      break
    }
  }

  init(_ what: String, count: Int, target: Int) {
    self.what = what
    ours = String(count)
    self.target = "≤ \(target)"
    isMet = count <= target
  }

  init(_ what: String, count: Int, reference: (name: String, count: Int), target: Double) {
    self.what = what
    ours = String(count)
    (self.reference, theirs) = (reference.name, String(reference.count))
    ratio = fixed(Double(count) / Double(reference.count), digits: 2)
    self.target = "≤ \(fixed(target, digits: 1))×"
    isMet = Double(count) <= target * Double(reference.count)
  }

  init(_ what: String, bytes: Int, reference: (name: String, bytes: Int), target: Double) {
    self.what = what
    ours = mebibytes(bytes)
    (self.reference, theirs) = (reference.name, mebibytes(reference.bytes))
    ratio = fixed(Double(bytes) / Double(reference.bytes), digits: 2)
    self.target = "≤ \(fixed(target, digits: 1))×"
    isMet = Double(bytes) <= target * Double(reference.bytes)
  }

  init(_ what: String, bytes: Int, target: Int? = nil) {
    self.what = what
    ours = mebibytes(bytes)
    if let target {
      self.target = "≤ \(mebibytes(target))"
      isMet = bytes <= target
    }
  }
}

/// A table for people, plain enough for a log.
struct Table {
  private(set) var rows: [Row] = []

  mutating func append(_ row: Row) {
    rows.append(row)
  }

  var missed: Int { rows.filter { $0.isMet == false }.count }

  func print() {
    let lines = [Row.header] + rows.map(\.columns)
    let widths = Row.header.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    for (index, line) in lines.enumerated() {
      let cells = zip(line.indices, zip(line, widths)).map { column, cell in
        let padding = String(repeating: " ", count: cell.1 - cell.0.count)
        return column == 0 || column == 3 ? cell.0 + padding : padding + cell.0
      }
      Swift.print("| " + cells.joined(separator: " | ") + " |")
      if index == 0 {
        Swift.print("|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|")
      }
    }
  }
}

extension Table {
  /// Adds the distribution of each side's times to a file: lines `ROW<tab>SIDE<tab>PART<tab>SECONDS`, of which that part of
  /// the times lie at or below the seconds, from 0 to 1 in steps of 0.01.
  func writeDistributions(to path: String) throws(Failure) {
    var text = ""
    for row in rows {
      for (side, samples) in row.samples {
        for (index, seconds) in samples.percentiles.enumerated() {
          text += "\(row.what)\t\(side)\t\(fixed(Double(index) / 100, digits: 2))\t\(seconds)\n"
        }
      }
    }
    try appendText(text, to: path)
  }
}

func time(_ seconds: Double) -> String {
  seconds < 1e-3 ? fixed(seconds * 1e6, digits: 1) + " µs" : fixed(seconds * 1e3, digits: 2) + " ms"
}

private func mebibytes(_ bytes: Int) -> String {
  fixed(Double(bytes) / 1_048_576, digits: 1) + " MiB"
}

/// A number with so many digits after the point.
func fixed(_ number: Double, digits: Int) -> String {
  guard number.isFinite else { return "-" }
  let scale = (0..<digits).reduce(1) { scale, _ in scale * 10 }
  let scaled = Int((number * Double(scale)).rounded())
  let fraction = String(abs(scaled % scale))
  let sign = scaled < 0 ? "-" : ""
  guard digits > 0 else { return "\(sign)\(abs(scaled))" }
  return "\(sign)\(abs(scaled / scale))." + String(repeating: "0", count: digits - fraction.count) + fraction
}
