/// A file's bytes: as programs see them, as they were last synchronised, and every state in between.
///
/// A page is what the disk writes whole; of the pages that were written since the last fsync(2) any may be on
/// the disk, in any of the states that they had, and so may any of the sizes. To make a file shorter is one change, as
/// SQLite takes it to be (https://sqlite.org/atomiccommit.html): what it cuts off is there with the sizes from before, and
/// neither it nor what was written before it comes back with a later one.
struct LossyFile: Sendable {
  static let pageSize = 4096
  private static let empty = [UInt8](repeating: 0, count: pageSize)
  /// Of a page that is written over and over the latest states are as good as all.
  private static let mostStates = 8

  private(set) var size = 0
  /// A page that is missing is a hole: zeros.
  private var pages: [Int: [UInt8]] = [:]
  private var durableSize = 0
  private var durablePages: [Int: [UInt8]] = [:]
  private var pageStates: [Int: [PageState]] = [:]
  private var sizeStates: [SizeState] = []
  /// How often the file was made shorter since the last fsync(2).
  private var cuts = 0

  private struct PageState {
    var bytes: [UInt8]
    /// How many cuts came before, with the one that made this state.
    let cuts: Int
    /// A cut made it: no earlier state is on the disk with it.
    var isCut: Bool
  }

  private struct SizeState {
    let size: Int
    let cuts: Int
  }
}

extension LossyFile {
  func bytes(at offset: Int, count: Int) -> [UInt8] {
    let end = min(offset + count, size)
    var bytes: [UInt8] = []
    var position = offset
    while position < end {
      let start = position % Self.pageSize
      let part = min(Self.pageSize - start, end - position)
      bytes += (pages[position / Self.pageSize] ?? Self.empty)[start..<start + part]
      position += part
    }
    return bytes
  }

  mutating func write(_ bytes: Span<UInt8>, at offset: Int) {
    var done = 0
    while done < bytes.count {
      let start = (offset + done) % Self.pageSize
      let part = min(Self.pageSize - start, bytes.count - done)
      var page = pages[(offset + done) / Self.pageSize] ?? Self.empty
      for index in 0..<part {
        page[start + index] = bytes[done + index]
      }
      set((offset + done) / Self.pageSize, page)
      done += part
    }
    if offset + done > size { set(size: offset + done) }
  }

  mutating func truncate(to newSize: Int) {
    if newSize < size { cuts += 1 }
    for (number, var page) in pages where (number + 1) * Self.pageSize > newSize {
      let kept = max(newSize - number * Self.pageSize, 0)
      for index in kept..<Self.pageSize { page[index] = 0 }
      set(number, page, isCut: true)
    }
    set(size: newSize)
  }

  /// fsync(2).
  mutating func synchronize() {
    durableSize = size
    durablePages = pages
    pageStates = [:]
    sizeStates = []
    cuts = 0
  }

  /// The file as it is found after a power loss; all of it is durable then.
  func survivor(_ fate: inout Fate) -> LossyFile {
    var file = LossyFile()
    let end = ([SizeState(size: durableSize, cuts: 0)] + sizeStates)[fate.state(of: sizeStates.count)]
    file.size = end.size
    file.pages = durablePages
    for (number, all) in pageStates.sorted(by: { $0.key < $1.key }) {
      let states = all.filter { $0.cuts <= end.cuts }
      if let cut = states.lastIndex(where: \.isCut) {
        file.pages[number] = states[cut + fate.state(of: states.count - cut - 1)].bytes
      } else {
        let state = fate.state(of: states.count)
        if state > 0 { file.pages[number] = states[state - 1].bytes }
      }
    }
    // Bytes behind the end are no content, also when the file grows again.
    file.truncate(to: file.size)
    file.synchronize()
    return file
  }

  private mutating func set(_ number: Int, _ page: [UInt8], isCut: Bool = false) {
    pages[number] = page
    var states = pageStates[number] ?? []
    if states.count == Self.mostStates {
      // Without the cut, the state after it stands for it.
      if states[0].isCut { states[1].isCut = true }
      states.removeFirst()
    }
    pageStates[number] = states + [PageState(bytes: page, cuts: cuts, isCut: isCut && cuts > 0)]
  }

  private mutating func set(size newSize: Int) {
    size = newSize
    sizeStates.append(SizeState(size: newSize, cuts: cuts))
  }
}
