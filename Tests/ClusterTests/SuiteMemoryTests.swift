import Cluster
import ClusterInMemory
import Glibc
import Model
import Store
import Testing

/// The memory that settings take which were read.
@Suite(.timeLimit(.minutes(1))) struct SuiteMemoryTests {
  /// By malloc_info(3), in a child process, where nothing else takes memory: the number of bytes depends on no machine. Without
  /// what a mount adds for each file that the kernel knows.
  @Test(.enabled(if: unsafe getenv("KEYHOLE_EXIT_TESTS") != nil, "KEYHOLE_EXIT_TESTS is not set"))
  func settingsThatWereReadTakeFewBytes() async {
    await #expect(processExitsWith: .success) {
      let (suites, settings) = (30, 100)
      let cluster = try TestStore()
      let writer = try cluster.suites()
      for number in 0..<suites {
        let suite = ExactString("suite-\(number)")
        _ = try writer.create(suite)
        _ = try writer.update(suite, known: nil) { contents in
          for key in 0..<settings {
            let value = ExactString("Hello World! \(key)")
            contents.settings[ExactString("key-\(key)")] = Setting(.string(value))
          }
        }
      }
      let reader = try cluster.suites()
      let store = SettingsStore(engine: reader)
      #expect(try reader.suiteNames().count == suites)
      let before = try #require(unsafe Self.memoryInUse())
      for number in 0..<suites {
        #expect(try store.suite(ExactString("suite-\(number)")).fetch()?.entries.count == settings)
      }
      let grown = try #require(unsafe Self.memoryInUse()) - before
      let each = Double(grown) / Double(suites * settings)
      #expect((100...240).contains(each), "\(each) bytes")
      writer.close()
      reader.close()
    }
  }

  /// In bytes: what the C library has from the system, without what is free.
  @unsafe private static func memoryInUse() -> Int? {
    typealias Report = @convention(c) (CInt, UnsafeMutablePointer<FILE>) -> CInt
    guard let symbol = unsafe dlsym(nil, "malloc_info"), let file = unsafe tmpfile() else { return nil }
    defer { unsafe fclose(file) }
    guard unsafe unsafeBitCast(symbol, to: Report.self)(0, file) == 0 else { return nil }
    unsafe rewind(file)
    var text = [UInt8](repeating: 0, count: 1 << 20)
    let count = unsafe text.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
    let report = String(decoding: text.prefix(count), as: UTF8.self)
    // The sums stand behind those of each heap.
    guard let sums = report.rest(after: "</heap>") else { return nil }
    guard let system = sums.size("<system type=\"current\""), let fast = sums.size("<total type=\"fast\""),
      let rest = sums.size("<total type=\"rest\""), let mapped = sums.size("<total type=\"mmap\"")
    else { return nil }
    return system + mapped - fast - rest
  }
}

extension String {
  /// The text behind the last occurrence of a mark.
  fileprivate func rest(after mark: String) -> Substring? {
    ranges(of: mark).last.map { self[$0.upperBound...] }
  }
}

extension Substring {
  /// The attribute `size` of an element that begins so.
  fileprivate func size(_ element: String) -> Int? {
    guard let start = ranges(of: element).first?.upperBound,
      let size = self[start...].ranges(of: " size=\"").first?.upperBound
    else { return nil }
    return Int(self[size...].prefix { $0.isNumber })
  }
}
