public import Model
package import Platform

/// A folder of suites: where settings are kept.
///
/// Every method may be called from any thread and may block for as long as a disk takes. What is missing
/// is nil or empty, never an error. `Tests/StoreConformance` says what an engine has to do, and checks it.
public protocol SuiteEngine: Sendable {
  /// How this engine writes values as XML.
  var propertyLists: any PropertyListCoding { get }

  /// The names that could be suites now, with the stamp of each, by looking at the folder only.
  func suites() throws(StoreError) -> [ExactString: SuiteStamp]

  /// The names of `suites()`.
  func suiteNames() throws(StoreError) -> [ExactString]

  /// Whether every name of `suites()` is a suite's: then a suite is listed and followed without being read. False, as by
  /// default: what a file is, only its contents tell.
  var hasProvenNames: Bool { get }

  /// The stamp of what is stored under a name now; nil: nothing is.
  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp?

  /// The contents of a suite; nil: there is none. `known`: earlier contents, from which an engine may go on where it can
  /// tell what has changed since.
  ///
  /// - Throws: `damaged` for what is there and is no property list with a dictionary at the top (after
  ///   reading again what may have been caught half-written), `tooLarge`, `accessDenied`, `system`.
  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents?

  /// Changes a suite in one step: under the lock that other processes obey too, `body` gets what is stored
  /// at that moment and what it leaves is stored whole, or nothing changes.
  ///
  /// Settings that `body` set with `modified` nil get the moment of the commit. Nothing is written where
  /// `body` leaves the values equal; times alone may still be recorded. `known` spares a read where its
  /// stamp is still the present one. The value survives `kill -9` of this process when the call returns.
  ///
  /// - Throws: what `body` throws; `notFound` where the suite is missing; `readOnly`, `noSpace`, `damaged`.
  func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents

  /// Why a suite can't be changed now; nil: it can, or there is none. Costs a few system calls at most.
  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String?

  /// Makes an empty suite. - Throws: `exists` where the name is taken, also by what is no suite.
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents

  /// Removes an empty suite. - Throws: `notEmpty`, `notFound`.
  func remove(_ suite: ExactString) throws(StoreError)

  /// Gives a suite another name; its times go with it. - Throws: `notFound`, `exists`, `readOnly`.
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError)

  /// Returns when everything that was committed to the suite is on the disk: fsync(2) of folder and file.
  func synchronize(_ suite: ExactString) throws(StoreError)

  /// The room of the disk that holds the suites: statvfs(3).
  func room() throws(StoreError) -> DiskRoom

  /// Keeps the values that keys had; nil, as by default: what is changed or removed is gone.
  var history: (any VersionedSuites)? { get }

  /// The layers that the suites are made of; nil, as by default: there are none.
  var origins: (any SettingOrigins)? { get }

  /// Whether the suites are shown as they were last, since the servers that keep them are not heard; nil, as by default: they are kept
  /// on this machine.
  var isStale: Bool? { get }

  /// The most bytes of a value that it keeps: those of a string or of data, the encoding of another one. nil: as many as the store allows.
  var largestValue: Int? { get }

  /// Takes note of the contents that are shown of a suite: an engine that keeps the same ones in memory can keep these instead, and
  /// so share them.
  func share(_ contents: SuiteContents, of suite: ExactString)

  /// Reads and changes one key without the others; nil, as by default: a suite is always read whole.
  var singleKeys: (any SingleKeySuites)? { get }

  /// Problems to report: files that are left alone, and why.
  func problems() -> [Problem]

  /// The same suites, for calls that must not wait for another process's lock: changes throw `wouldWait` while it is
  /// held, and ``waitForLock(of:)`` waits until it is free.
  ///
  /// An engine without locks is its own, as by default.
  var withoutWaiting: any SuiteEngine { get }

  /// Returns when no other process holds the lock of a suite; it may be taken again by then.
  ///
  /// - Throws: `unreachable` after ten seconds; `notFound`.
  func waitForLock(of suite: ExactString) throws(StoreError)
}

extension SuiteEngine {
  /// The contents of a suite, read as a whole; nil: there is none. - Throws: as `read(_:since:)`.
  public func read(_ suite: ExactString) throws(StoreError) -> SuiteContents? { try read(suite, since: nil) }

  public func suiteNames() throws(StoreError) -> [ExactString] { Array(try suites().keys) }

  /// False.
  public var hasProvenNames: Bool { false }

  /// nil.
  public var history: (any VersionedSuites)? { nil }

  /// nil.
  public var origins: (any SettingOrigins)? { nil }

  /// nil.
  public var isStale: Bool? { nil }

  /// nil.
  public var largestValue: Int? { nil }

  /// Does nothing: no contents are kept.
  public func share(_ contents: SuiteContents, of suite: ExactString) {}

  /// nil.
  public var singleKeys: (any SingleKeySuites)? { nil }

  /// The engine itself: it has no locks that another process could hold.
  public var withoutWaiting: any SuiteEngine { self }

  /// Returns at once: there is no lock.
  public func waitForLock(of suite: ExactString) throws(StoreError) {}
}

/// Which version of a suite is stored, by what the folder tells without reading it.
public struct SuiteStamp: Hashable, Sendable {
  /// The file system's number (`st_dev`); 0 for engines without files.
  public var device: UInt64
  /// The file's inode (`st_ino`), or another number that no other version has.
  public var number: UInt64
  /// The length of the stored form in bytes.
  public var size: Int64
  /// The time of the last change of the stored form (`st_mtim`).
  public var modified: Timestamp
  /// The changes that are kept beside the stored form; nil: there are none.
  public var journal: JournalStamp?

  /// Engines without files leave out what they don't have.
  public init(
    device: UInt64 = 0, number: UInt64 = 0, size: Int64 = 0, modified: Timestamp, journal: JournalStamp? = nil
  ) {
    self.device = device
    self.number = number
    self.size = size
    self.modified = modified
    self.journal = journal
  }
}

/// Which version of a suite's journal is stored.
public struct JournalStamp: Hashable, Sendable {
  /// The length of the journal in bytes.
  public var size: Int64
  /// The time of its last record (`st_mtim`).
  public var modified: Timestamp

  /// Bytes, and the time of the last record.
  public init(size: Int64, modified: Timestamp) {
    (self.size, self.modified) = (size, modified)
  }
}

/// The contents of a suite at one moment.
public struct SuiteContents: Sendable {
  /// Every key with its value and time.
  public var settings: SharedDictionary<Setting>
  /// nil only in engines' own tests: contents that were never stored.
  public var stamp: SuiteStamp?
  /// The suite can be read but not changed, and why.
  public var readOnly: String?
  /// Of contents that a change leaves: the number of the process that changes them, where this one does it for another (a mount
  /// for its callers). nil, as in what an engine returns: this process does. Versions of settings are gathered by it.
  public var writer: Int32?
  /// Up to where the times in `settings` are those of the engine's records; nil: none were read. Only for the engine.
  package var times: TimesPosition?

  /// - Parameters:
  ///   - settings: every key with its value and time.
  ///   - stamp: the version that was read; nil: it was never stored.
  ///   - readOnly: why the suite can't be changed; nil: it can.
  public init(
    settings: SharedDictionary<Setting> = [:], stamp: SuiteStamp? = nil, readOnly: String? = nil
  ) {
    self.settings = settings
    self.stamp = stamp
    self.readOnly = readOnly
  }
}

/// A place in the file in which an engine records times.
package struct TimesPosition: Hashable, Sendable {
  /// The file.
  package var file: FileID
  /// The end of what was read, in bytes.
  package var end: Int

  package init(file: FileID, end: Int) {
    (self.file, self.end) = (file, end)
  }
}

/// A key's value and when it last changed. It is packed, as there may be a million.
public struct Setting: Sendable {
  /// The value, of one of the types of property lists.
  public var value: SettingValue
  /// Another number for each other value, never used twice in a process; 0: it is in no snapshot yet.
  var version: UInt64 = 0
  private var seconds: Int64 = 0
  /// `UInt32.max`: there is no time.
  private var nanoseconds = UInt32.max
  /// The exact length of the content in bytes, in a snapshot.
  var size: UInt32 = 0

  /// nil: at the commit, which fills it in. What an engine returns is never nil.
  public var modified: Timestamp? {
    get { nanoseconds == .max ? nil : Timestamp(seconds: seconds, nanoseconds: nanoseconds) }
    set { (seconds, nanoseconds) = newValue.map { ($0.seconds, $0.nanoseconds) } ?? (0, .max) }
  }

  /// `modified` nil: the commit sets it.
  public init(_ value: SettingValue, modified: Timestamp? = nil) {
    self.value = value
    self.modified = modified
  }
}

extension Setting: Hashable {
  /// Equal values and times.
  public static func == (left: Setting, right: Setting) -> Bool {
    left.modified == right.modified && left.value == right.value
  }

  /// Hashes value and time.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(value)
    hasher.combine(modified)
  }
}

/// The room of a disk, as statvfs(3) has it.
public struct DiskRoom: Hashable, Sendable {
  /// The unit of the block counts, in bytes.
  public var blockSize: UInt64
  /// The size of the file system in blocks (`f_blocks`).
  public var blocks: UInt64
  /// Free blocks (`f_bfree`), with those that only root may use.
  public var freeBlocks: UInt64
  /// Free blocks for this user (`f_bavail`).
  public var availableBlocks: UInt64

  /// The unit and three counts of it.
  public init(blockSize: UInt64, blocks: UInt64, freeBlocks: UInt64, availableBlocks: UInt64) {
    self.blockSize = blockSize
    self.blocks = blocks
    self.freeBlocks = freeBlocks
    self.availableBlocks = availableBlocks
  }
}

extension DiskRoom {
  package init(_ volume: Volume) {
    self.init(
      blockSize: volume.blockSize, blocks: volume.blocks, freeBlocks: volume.freeBlocks,
      availableBlocks: volume.availableBlocks)
  }
}

/// Something that `keyhole doctor` tells a person.
public struct Problem: Hashable, Sendable {
  /// The subject: a path or a name.
  public var subject: String
  /// The fault, as a clause.
  public var reason: String
  /// The remedy.
  public var remedy: String

  /// - Parameters:
  ///   - subject: the path or name.
  ///   - reason: what is wrong with it.
  ///   - remedy: what to do, as a clause.
  public init(subject: String, reason: String, remedy: String) {
    self.subject = subject
    self.reason = reason
    self.remedy = remedy
  }
}
