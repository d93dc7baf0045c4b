import Glibc

/// A pipe whose reader gets what was written, and then its end.
struct Pipe: ~Copyable {
  let readEnd: Int32
  private(set) var writeEnd: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    _ = unsafe pipe(&ends)
    (readEnd, writeEnd) = (ends[0], ends[1])
  }

  init(holding bytes: some Sequence<UInt8>) {
    self.init()
    let bytes = Array(bytes)
    // SAFETY: the array says how long it is. A pipe takes this much at once.
    _ = unsafe write(writeEnd, bytes, bytes.count)
    closeWriteEnd()
  }

  mutating func closeWriteEnd() {
    if writeEnd >= 0 { close(writeEnd) }
    writeEnd = -1
  }

  deinit {
    close(readEnd)
    if writeEnd >= 0 { close(writeEnd) }
  }
}
