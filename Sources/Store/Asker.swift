/// A process that wants a secret, as the system tells of it while it is held.
public struct Asker: Hashable, Sendable {
  /// One process for ever: its number may be another's later.
  public struct Process: Hashable, Sendable {
    public var number: Int32
    /// Its start, in clock ticks since the system's.
    public var start: UInt64
  }

  /// A file, whatever its name.
  public struct File: Hashable, Sendable {
    public var device: UInt64
    public var inode: UInt64
  }

  public var process: Process
  /// The path of the executable, as the kernel knows it.
  public var program: String
  public var programFile: File
  /// What an interpreter runs, as its command line says; nil: no interpreter, or no script.
  public var script: String?
  public var commandLine: String
  /// Names and numbers of the processes above it: `bash (17)`.
  public var parents: [String]
  public var user: UInt32
  /// The device of its terminal; nil: it has none.
  public var terminal: String?
}
