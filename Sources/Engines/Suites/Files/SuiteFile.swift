import Model
import Platform
import Store

/// The file of one suite.
struct SuiteFile {
  static let ending = ".plist"
  /// Larger files are no settings; reading one would take the memory of all others.
  static let largest = 64 << 20

  let folder: String
  let suite: ExactString
  /// Where the suite's name leads; perhaps a link.
  let path: String

  /// nil: no file can have the name.
  init?(folder: String, suite: ExactString) {
    guard (try? Self.check(suite)) != nil else { return nil }
    self.folder = folder
    self.suite = suite
    // In one allocation: each open of a setting asks for it.
    var path = folder
    path.reserveCapacity(folder.utf8.count + 1 + suite.utf8.count + Self.ending.utf8.count)
    path.append("/")
    path.append(suite.string)
    path.append(Self.ending)
    self.path = path
  }

  /// - Throws: `invalidName`, `nameTooLong`.
  static func check(_ suite: ExactString) throws(StoreError) {
    guard !suite.isEmpty else { throw .invalidName(reason: "a suite needs a name") }
    guard !suite.utf8.contains(where: { $0 == 0x2F || $0 == 0 }) else {
      throw .invalidName(reason: "a suite's name can't hold “/” or NUL")
    }
    guard suite.utf8.count + ending.utf8.count <= 255 else { throw .nameTooLong }
  }

  /// The status of the file, links followed; nil: it does not exist, or is no regular file.
  ///
  /// It is asked before the file is opened: opening a device or a FIFO can have effects.
  func status() throws(StoreError) -> FileStatus? {
    do throws(StoreError) {
      guard let status = try SuiteFiles.status(path), status.isRegular else { return nil }
      return status
    } catch .system(.ELOOP, operation: _) {
      return nil
    }
  }

  /// The file that is written: the one that a link leads to, so that links of dotfile managers stay.
  ///
  /// - Throws: `notFound`, also for what is no regular file.
  func target() throws(StoreError) -> String {
    guard let status = try SuiteFiles.status(path, follow: false) else { throw .notFound }
    guard status.isLink else {
      guard status.isRegular else { throw .notFound }
      return path
    }
    let target: String
    do { target = try Files.realPath(path) } catch .ELOOP {
      throw .notFound
    } catch {
      throw StoreError(ofSuite: error, "realpath")
    }
    guard try SuiteFiles.status(target)?.isRegular == true else { throw .notFound }
    return target
  }

  /// Why the suite can't be changed; nil: it can.
  func readOnlyReason(of target: String) -> String? {
    let targetFolder = Files.folder(of: target)
    let isFileWritable = Files.allows(.write, target)
    if isFileWritable, Files.allows([.write, .execute], targetFolder) { return nil }
    if [target, targetFolder].contains(where: { (try? Volume(at: $0))?.isReadOnly == true }) {
      return "its file system is mounted read-only"
    }
    return isFileWritable ? "the folder of its file is not writable" : "its file is not writable"
  }
}

extension SuiteFile {
  struct Content {
    let values: [ExactString: SettingValue]
    let status: FileStatus
    /// There are zeros in the XML: Foundation writes them where a string has them, Keyhole never does, and a
    /// power cut leaves them in place of what it took.
    let hasZeros: Bool
  }

  /// How often, and after how many microseconds, what can't be parsed is read again.
  private static let tries = 40
  fileprivate static let pause: UInt32 = 5000

  /// The content of the file; nil: there is none.
  ///
  /// Foundation writes in place, so that a file may be caught empty or in part. One that changed within the
  /// last second is read again for up to 200 ms before it counts as damaged.
  func read(pausing: () -> Void = { Pause.microseconds(Self.pause) }) throws(StoreError) -> Content? {
    for attempt in 1... {
      guard let status = try status() else { return nil }
      guard status.stamp.size <= Self.largest else { throw .tooLarge(limit: Self.largest) }
      do {
        guard let bytes = try bytes(status) else { return nil }
        let hasZeros = !bytes.starts(with: BinaryReader.magic) && bytes.hasZeros
        return Content(values: try Self.values(bytes), status: status, hasZeros: hasZeros)
      } catch let error as PropertyListError {
        guard attempt < Self.tries, status.isYoung else {
          throw .damaged(what: "\(suite.string)\(Self.ending): \(error.reason)")
        }
        pausing()
      } catch let error as StoreError {
        throw error
      } catch {
        throw .system(.EIO, operation: "read")
      }
    }
    return nil
  }

  /// The bytes of a version of the file; nil: there is another one by now, or it is too large.
  func readBytes(_ status: FileStatus) throws(StoreError) -> [UInt8]? {
    guard status.stamp.size <= Self.largest else { return nil }
    do throws(StoreError) {
      return try bytes(of: Self.open(path), status)
    } catch .notFound {
      return nil
    } catch .interrupted {
      return nil
    }
  }

  private func bytes(_ status: FileStatus) throws -> [UInt8]? {
    do throws(StoreError) {
      return try bytes(of: Self.open(path), status)
    } catch .notFound {
      return nil
    } catch .interrupted {
      throw PropertyListError("it changes while it is read")
    }
  }

  /// - Throws: `interrupted` where it changes meanwhile.
  private func bytes(of file: borrowing Descriptor, _ status: FileStatus) throws(StoreError) -> [UInt8] {
    guard try file.suiteStatus().stamp == status.stamp else { throw .interrupted }
    let bytes: [UInt8]
    do { bytes = try file.readToEnd(limit: Self.largest, expecting: Int(clamping: status.size)) } catch {
      throw StoreError(ofSuite: error, "read")
    }
    guard bytes.count == status.size, try file.suiteStatus().stamp == status.stamp else {
      throw .interrupted
    }
    return bytes
  }

  /// Reading only, without effects on devices and terminals.
  static func open(_ path: String, _ options: OpenFlags = .reading) throws(StoreError) -> Descriptor {
    try SuiteFiles.call("open") { () throws(Errno) in
      try Descriptor(path, options.union([.nonBlocking, .noControllingTerminal]))
    }
  }

  static func values(_ bytes: [UInt8]) throws(PropertyListError) -> [ExactString: SettingValue] {
    switch try PropertyLists.read(bytes) {
    case .dictionary(let values): return values
    // A suite whose only key has this name.
    case .uid(let number): return ["CF$UID": .integer(Int128(number))]
    default: throw PropertyListError("what it holds is no dictionary")
    }
  }
}

extension FileStatus {
  /// It changed within the last second (or will have: clocks are set back).
  fileprivate var isYoung: Bool {
    stamp.modified.seconds >= Timestamp.now.seconds - 1
  }
}

extension [UInt8] {
  /// memchr(3), as large suites want it.
  var hasZeros: Bool { span.firstOffset(of: 0) != nil }
}
