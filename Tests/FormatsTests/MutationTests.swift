import Glibc
import Testing

/// Mutations of a kept corpus: no bytes end the process. `Scripts/fuzz` runs it for longer.
@Suite(.serialized) struct MutationTests {
  @Test(arguments: Parser.allCases.filter { FuzzRun.isChosen($0.rawValue) })
  func noBytesEndTheProcess(parser: Parser) throws {
    let corpus = parser.corpus
    try #require(!corpus.isEmpty)
    var pool = FuzzPool(parser)
    for bytes in corpus { pool.note(bytes, parser.run(bytes)) }
    var mutator = Mutator(seed: FuzzRun.seed)
    var slowest = 0.0
    FuzzRun.run(parser.rawValue, count: 600) { _ in
      let bytes = mutated(corpus, pool, parser, &mutator)
      if let folder = FuzzRun.folder { Corpus.write(bytes, to: "\(folder)/\(parser.rawValue)") }
      let began = FuzzRun.processorTime
      let outcome = parser.run(bytes)
      let time = FuzzRun.processorTime - began
      slowest = max(slowest, time)
      pool.note(bytes, outcome)
    }
    #expect(slowest < 10, "\(parser): a parser takes time out of proportion, in seconds")
    if FuzzRun.seconds != nil { #expect(FuzzRun.mostMemory < 2 << 30, "\(parser): and memory, in bytes") }
  }

  private func mutated(
    _ corpus: [[UInt8]], _ pool: FuzzPool, _ parser: Parser, _ mutator: inout Mutator
  ) -> [UInt8] {
    let isFromPool = !pool.entries.isEmpty && mutator.below(2) == 0
    let begin =
      isFromPool ? pool.entries[mutator.below(pool.entries.count)] : corpus[mutator.below(corpus.count)]
    var bytes = mutator.mutated(begin, with: corpus[mutator.below(corpus.count)])
    if parser == .tar, mutator.below(3) > 0 { TarChecksums.mend(&bytes) }
    return bytes
  }
}

/// Tar headers with sums that hold, so that a damaged header is read.
enum TarChecksums {
  static func mend(_ bytes: inout [UInt8]) {
    for block in stride(from: 0, to: bytes.count - 511, by: 512)
    where bytes[(block + 257)...].starts(with: "ustar".utf8) {
      let sum = (0..<512).reduce(0) { $0 + Int((148..<156).contains($1) ? 0x20 : bytes[block + $1]) }
      let digits = String(sum, radix: 8)
      let text = String(repeating: "0", count: max(0, 6 - digits.count)) + digits + "\0 "
      bytes.replaceSubrange((block + 148)..<(block + 156), with: Array(text.utf8.prefix(8)))
    }
  }
}
