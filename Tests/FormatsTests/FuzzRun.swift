import Glibc

/// How long to go on, and from what: `FUZZ_SECONDS` of processor time for each parser, which `FUZZ_PARSER` may name, from
/// `FUZZ_SEED`. `FUZZ_FOLDER` keeps the bytes that are being parsed, so that those that end the process can be read, and
/// bytes that led to something new, with which the next run goes on. Without them a few hundred mutations, always the same.
enum FuzzRun {
  static let seconds = variable("FUZZ_SECONDS").flatMap(Double.init)
  static let folder = variable("FUZZ_FOLDER")
  static let seed =
    variable("FUZZ_SEED").flatMap(UInt64.init) ?? (seconds == nil ? 13 : UInt64.random(in: 0...UInt64.max))

  static func isChosen(_ name: String) -> Bool {
    variable("FUZZ_PARSER").map { $0 == name } ?? true
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).flatMap { unsafe $0.pointee == 0 ? nil : unsafe String(cString: $0) }
  }

  /// The processor time of this process in seconds: what others do on the machine does not count.
  static var processorTime: Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// In bytes, the most that this process ever had.
  static var mostMemory: Int {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss * 1024
  }

  /// Calls `body` until the time is over, or `count` times where none is given.
  static func run(_ name: String, count: Int, _ body: (_ number: Int) throws -> Void) rethrows {
    let began = processorTime
    var number = 0
    while seconds.map({ processorTime - began < $0 }) ?? (number < count) {
      try body(number)
      number += 1
    }
    guard seconds != nil else { return }
    let hundredths = Int((processorTime - began) * 100)
    print("fuzz: \(name): \(number) cases, \(hundredths / 100).\(hundredths / 10 % 10) s, seed \(seed)")
  }
}

/// Bytes that led to something that none before had led to.
struct FuzzPool {
  private static let largest = 400
  private let folder: String?
  private var outcomes: Set<String> = []
  private(set) var entries: [[UInt8]] = []

  init(_ parser: Parser) {
    folder = FuzzRun.folder.map { "\($0)/\(parser.rawValue).pool" }
    guard let folder else { return }
    unsafe mkdir(folder, 0o700)
    for number in 0..<Self.largest {
      let bytes = Corpus.file("\(folder)/\(number)")
      if !bytes.isEmpty { note(bytes, parser.run(bytes)) }
    }
  }

  mutating func note(_ bytes: [UInt8], _ outcome: String) {
    guard entries.count < Self.largest, bytes.count < 1 << 14, outcomes.insert(outcome).inserted else {
      return
    }
    if let folder { Corpus.write(bytes, to: "\(folder)/\(entries.count)") }
    entries.append(bytes)
  }
}
