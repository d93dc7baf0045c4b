import Glibc

/// How many steps were acknowledged, in a file that is synchronised each time.
///
/// It is on the disk that loses its power, so it says exactly what had been promised at each moment.
struct Oracle: ~Copyable {
  private let file: Int32
  private let path: String

  init(_ path: String) throws(OracleError) {
    file = unsafe open(path, O_WRONLY | O_CLOEXEC)
    self.path = path
    try check(file >= 0)
  }

  deinit { close(file) }

  func acknowledge(_ steps: Int) throws(OracleError) {
    var number = UInt64(steps).littleEndian
    let count = MemoryLayout<UInt64>.size
    try check(unsafe withUnsafeBytes(of: &number) { unsafe pwrite(file, $0.baseAddress, count, 0) } == count)
    try check(fsync(file) == 0)
  }

  private func check(_ isDone: Bool) throws(OracleError) {
    if !isDone { throw OracleError(path: path, errno: errno) }
  }
}

struct OracleError: Error {
  let path: String
  let errno: Int32
}
