import CSystem
import Glibc

/// A program that is started in the user's place, as env(1) would: it has the conditions that this process was started with.
package struct ProgramStart: Sendable {
  /// A descriptor that the program gets.
  package struct Stream: Sendable {
    let source: Int32
    let number: Int32

    /// `source` of this process becomes the program's `number`.
    package init(_ source: Int32, as number: Int32) {
      (self.source, self.number) = (source, number)
    }
  }

  /// The reason why it could not be started.
  package struct Failure: Error {
    package let errno: Errno
    /// Whether the program itself was found to be missing or not executable; else this process could start none.
    package let isOfProgram: Bool

    package init(errno: Errno, isOfProgram: Bool) {
      (self.errno, self.isOfProgram) = (errno, isOfProgram)
    }
  }

  private let program: FoundProgram
  /// Name and arguments, byte for byte.
  private let words: [[UInt8]]
  private let conditions: StartConditions
  /// Those of the three standard streams that are not this process's own, and others.
  package var streams: [Stream] = []
  /// The program's side of a pseudo-terminal that becomes the controlling one of a session of its own; nil: it is in this
  /// process's session and group.
  package var terminal: Int32?
  /// With `terminal`: a pipe that gets what was typed on it and not read when the program ends; nil: that is lost.
  package var rest: Int32?

  /// `words`: the name that the program is called by, which is not looked up, and its arguments; not empty.
  package init(_ program: FoundProgram, _ words: [[UInt8]], _ conditions: StartConditions) {
    (self.program, self.words, self.conditions) = (program, words, conditions)
  }

  /// Starts it. Its variables are those of this process, and `variables`: `NAME=value`, with a NUL byte behind each. One of
  /// a name replaces this process's. They are copied by execve(2) only, and can be wiped afterwards.
  ///
  /// - Returns: the child to wait for: with a terminal the leader of its session, which ends and stops as the program does.
  package func start(adding variables: Span<UInt8>) throws(Failure) -> Int32 {
    let words = unsafe words.map { unsafe strdup($0.map { CChar(bitPattern: $0) } + [0]) }
    defer { unsafe words.forEach { unsafe free($0) } }
    return try unsafe variables.withUnsafeBytes { (block) throws(Failure) in
      try unsafe start(words + [nil], Self.environment(with: block))
    }
  }

  private typealias Strings = [UnsafeMutablePointer<CChar>?]

  private func start(_ words: Strings, _ variables: Strings) throws(Failure) -> Int32 {
    let limits = [
      // 1 byte: with 0 a program that the kernel pipes core files to would still get one (core(5)).
      conditions.coreFile.limit(.coreFile, current: min(1, conditions.coreFile.highest)),
      conditions.lockedMemory.limit(.lockedMemory, current: conditions.lockedMemory.current),
    ]
    let path = program.path.map { CChar(bitPattern: $0) } + [0]
    let given = streams.map { linux_given(source: $0.source, number: $0.number) }
    var wasExecuted: Int32 = 0
    // SAFETY: all arrays, and the strings in them, live until the call returns.
    let child = unsafe words.withUnsafeBufferPointer { words in
      unsafe variables.withUnsafeBufferPointer { variables in
        unsafe given.withUnsafeBufferPointer { given in
          unsafe limits.withUnsafeBufferPointer { limits in
            unsafe path.withUnsafeBufferPointer { path in
              var program = unsafe linux_program(
                path: path.baseAddress, device: program.file.device, inode: program.file.inode,
                words: words.baseAddress, variables: variables.baseAddress, descriptors: given.baseAddress,
                descriptor_count: given.count, limits: limits.baseAddress, limit_count: limits.count,
                umask: conditions.fileMask, blocked: conditions.blockedSignals, terminal: terminal ?? -1,
                rest: rest ?? -1)
              return unsafe linux_start(&program, &wasExecuted)
            }
          }
        }
      }
    }
    guard child > 0 else { throw Failure(errno: .current, isOfProgram: wasExecuted == 0) }
    return child
  }

  /// Pointers to this process's variables and to those of a block, which replace them; NULL behind the last one.
  private static func environment(with block: UnsafeRawBufferPointer) -> Strings {
    var added: Strings = unsafe []
    var names: Set<[UInt8]> = []
    var start = 0
    while start < block.count {
      let rest = unsafe block[start...]
      guard let end = unsafe rest.firstIndex(of: 0) else { break }
      names.insert(unsafe Array(rest[..<end].prefix { $0 != UInt8(ascii: "=") }))
      // SAFETY: execve(2) only reads them.
      let text = unsafe block.baseAddress.map { unsafe $0 + start }?.assumingMemoryBound(to: CChar.self)
      unsafe added.append(UnsafeMutablePointer(mutating: text))
      start = end + 1
    }
    var all: Strings = unsafe []
    var next = unsafe environ
    while let variable = unsafe next.pointee {
      let length = unsafe strcspn(variable, "=")
      let name = unsafe UnsafeRawBufferPointer(start: variable, count: length)
      if unsafe !names.contains(Array(name)) { unsafe all.append(variable) }
      unsafe next += 1
    }
    return unsafe all + added + [nil]
  }
}

extension ResourceLimit.Values {
  fileprivate func limit(_ resource: ResourceLimit, current: UInt64) -> linux_limit {
    linux_limit(resource: Int32(clamping: resource.rawValue), current: current, highest: highest)
  }
}
