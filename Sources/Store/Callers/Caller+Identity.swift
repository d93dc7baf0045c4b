public import Platform

extension Caller {
  /// The identity of a process at one moment, as the system shows it.
  ///
  /// A process is **identified** if it has the user, pid and mount namespaces of this one and its executable can be read.
  /// In other namespaces a path or the executable itself may be the process's own choice (a bind mount, PR_SET_MM_MAP). The
  /// executable of a process that is not dumpable can't be read by another one of the same user, except where
  /// `IdentifiedCallers` has it from the time before.
  public struct Identity: Sendable {
    /// One process: its number may later be another's, with another start.
    public struct Process: Hashable, Sendable {
      /// The process ID in this process's pid namespace.
      public var number: Int32
      /// In clock ticks since the system's start.
      public var start: UInt64

      /// A process by its ID and start, as fields 1 and 22 of /proc/PID/stat have them.
      public init(number: Int32, start: UInt64) {
        self.number = number
        self.start = start
      }

      /// The process that has this ID now; nil: there is none.
      public init?(running number: Int32) {
        guard number > 0, let start = ProcessFiles(number).status?.start else { return nil }
        self.init(number: number, start: start)
      }

      /// Whether the process has not ended.
      public var isRunning: Bool { Process(running: number) == self }
    }

    /// The file that a process executes, as /proc/PID/exe names it.
    public struct Executable: Hashable, Sendable {
      /// The path as the kernel shows it.
      public var path: String
      /// Device and inode of the file that is executed, also where the path leads to another one.
      public var file: FileID
      /// Whether the path leads to the same file. It does not after the file was removed or replaced.
      public var hasPath: Bool

      /// - Parameters:
      ///   - path: the path as the kernel shows it.
      ///   - file: the identity of the file that is executed.
      ///   - hasPath: whether the path leads to that file.
      public init(path: String, file: FileID, hasPath: Bool = true) {
        self.path = path
        self.file = file
        self.hasPath = hasPath
      }
    }

    /// nil: the process has no number in this pid namespace.
    public var process: Process?
    /// The user ID; nil: the process is gone or can't be read.
    public var user: UInt32?
    /// nil: the process is unidentified.
    public var executable: Executable?
    /// The first argument of a script interpreter, as an absolute path; nil: there is none, or it is no interpreter.
    public var script: String?
    /// As the process shows it: it may be anything.
    public var commandLine = ""
    /// Of `keyhole run` the program that it starts with what it opens; nil: it is another command.
    public var startedCommand: StartedCommand?
    /// Of a credential helper the program that has started it; nil: it is another command.
    public var helped: HelpedProgram?
    /// The processes above it, the nearest first: `/usr/bin/bash (17)`, or `[name] (17)` where the executable can't be
    /// read.
    public var parents: [String] = []
    /// The device of its controlling terminal.
    public var terminal: String?
    /// The leader of its session (setsid(2)), such as the shell of a terminal; its start is 0 where the leader has ended. nil:
    /// it is not known.
    public var session: Process?
    /// Why the process is unidentified, for a person.
    public var obstacle: String?
    /// Whether its path was compared with its file just now, so that a rule for that path needs no look at the file.
    var hasComparedPath = false
    /// Its fields in a line of the record, where they are kept for the next access; they never change.
    var textForRecord: String?
    private var handle: ProcessHandle?
    /// It was read from the system, with which it can be compared again.
    private var isObserved = false
    /// The executable and the script that were left out on purpose, as no rule may let them in; they are compared all the same.
    private var hidden: (executable: Executable?, script: String?)?

    /// An identity that another process has found out: it never changes.
    public init(process: Process?, user: UInt32?, executable: Executable?) {
      self.process = process
      self.user = user
      self.executable = executable
    }
  }
}

extension Caller.Identity {
  /// Whether rules for programs can apply to the process: its executable is known.
  public var isIdentified: Bool { executable != nil }

  /// For messages, questions and the log: the executable's path, or why there is none.
  public var programName: String {
    guard let executable else { return "an unidentified program (\(obstacle ?? "unknown"))" }
    return executable.hasPath ? executable.path : "\(executable.path) (the file no longer has this path)"
  }

  /// Whether this is the same process with the same executable as when it was read, and has not ended.
  ///
  /// An unidentified process without a number claims nothing, so there is nothing to compare.
  public var isUnchanged: Bool {
    guard isObserved, let process else { return true }
    guard isAlive, ProcessFiles(process.number).status?.start == process.start else { return false }
    var now = self
    (now.executable, now.script) = (nil, nil)
    now.identify(ProcessFiles(process.number), process)
    // The last, so that what was read belongs to this process.
    let (executable, script) = hidden ?? (executable, script)
    return now.executable?.file == executable?.file && now.script == script && isHelpedUnchanged && isAlive
  }

  private var isAlive: Bool { handle?.isAlive ?? true }
}

extension Caller.Identity {
  /// An identity with what has to stay the same for rules to hold for the process as before.
  struct ForRules: Sendable {
    let identity: Caller.Identity
    private let process: ObservedProcess
    private let executable: Executable
    /// Of an interpreter of scripts, for which rules can name the script; nil: it is none.
    private let commandLine: [UInt8]?

    /// nil: the process is unidentified, its file has lost its path, or it opens items for another program.
    init?(_ identity: Caller.Identity) {
      guard identity.isObserved, let process = identity.process, let executable = identity.executable,
        executable.hasPath, !identity.servesAnother, let observed = ObservedProcess(process.number)
      else { return nil }
      var kept = identity
      kept.textForRecord = identity.madeTextForRecord
      // `isUnchanged` does it before each use.
      kept.hasComparedPath = true
      (self.identity, self.process, self.executable) = (kept, observed, executable)
      let interpreter = ScriptInterpreter(path: executable.path, file: executable.file)
      let files = ProcessFiles(process.number)
      commandLine = interpreter == nil ? nil : files.commandLineBytes
      guard identity.script == nil || commandLine?.isEmpty == false else { return nil }
      // From here on the observed process has to be the one that was identified, with its program and script.
      guard interpreter?.script(of: files) == identity.script, identity.isUnchanged else { return nil }
    }

    /// Whether the process has neither ended nor executed a program since.
    var isAlive: Bool { process.hasItsMemory }

    /// Whether the process is the same and executes the same program as when it was identified, whose file still has its path,
    /// with the same command line if that names a script.
    ///
    /// Its user namespace needs no comparison: there a program can choose which executable it shows, but it would have to be executed
    /// first.
    var isUnchanged: Bool {
      process.hasItsMemory && process.executable == executable.file && process.sharesMounts
        && FileID(executable.path) == executable.file
        && (commandLine.map { $0 == ProcessFiles(process.number).commandLineBytes } ?? true)
    }
  }
}

// MARK: - Reading

extension Caller.Identity {
  /// The process that a thread belongs to.
  init(thread: Int32) {
    guard thread > 0, let number = ProcessFiles(thread).threadGroup else {
      self = .unknown
      return
    }
    self.init(number: number, ProcessHandle(process: number))
  }

  /// The process at the other end of a socket.
  init(peerOf socket: Int32) {
    let number = ProcessHandle.numberOfPeer(of: socket)
    guard number > 0, let handle = ProcessHandle(peerOf: socket) else {
      self = .unknown
      return
    }
    self.init(number: number, handle)
  }

  /// A process that another one has named, such as a message bus. Without a handle that was made when the process was certainly
  /// meant, it may be another process that has the number since.
  public init(process number: Int32, _ handle: ProcessHandle?) {
    guard number > 0, let handle = handle ?? ProcessHandle(process: number) else {
      self = .unknown
      return
    }
    self.init(number: number, handle)
  }

  /// The same process without its program, where that can't be relied on: no rule that lets a program in applies.
  ///
  /// - Parameter reason: why not, for a person.
  /// - Returns: the identity, unidentified.
  public func withoutProgram(because reason: String) -> Caller.Identity {
    var identity = self
    identity.hidden = (executable, script)
    (identity.executable, identity.script, identity.startedCommand) = (nil, nil, nil)
    (identity.obstacle, identity.textForRecord) = (reason, nil)
    return identity
  }

  private static var unknown: Caller.Identity {
    var unknown = Caller.Identity(process: nil, user: nil, executable: nil)
    unknown.obstacle = "it runs in another pid namespace, or has ended"
    return unknown
  }

  private init(number: Int32, _ handle: ProcessHandle?) {
    let files = ProcessFiles(number)
    guard let stat = files.status, let start = stat.start else {
      self = .unknown
      return
    }
    let process = Process(number: number, start: start)
    self.init(process: process, user: files.user, executable: nil)
    self.handle = handle
    isObserved = true
    let bytes = files.commandLineBytes
    let words = ProcessFiles.words(bytes)
    commandLine = words.filter { !$0.isEmpty }.joined(separator: " ")
    parents = Self.parents(of: stat)
    terminal = files.terminalPath(device: stat.terminal)
    session = stat.session.flatMap { leader in
      leader > 0 ? Process(number: leader, start: ProcessFiles(leader).status?.start ?? 0) : nil
    }
    identify(files, process)
    startedCommand = Self.startedCommand(executable, bytes, process)
    helped = Self.helped(executable, words, process, parent: stat.parent)
    // Read before this: it is the process that the handle refers to.
    if !isAlive { self = .unknown }
  }

  private mutating func identify(_ files: ProcessFiles, _ process: Process) {
    guard let file = files.executable, let path = files.executablePath else {
      executable = IdentifiedCallers.executable(of: process)
      obstacle = executable == nil ? "it does not let other processes see its executable" : nil
      return
    }
    guard Self.isHere(files) else {
      obstacle = "it runs in another user, pid or mount namespace"
      return
    }
    let found = Executable(path: path, file: file, hasPath: FileID(path) == file)
    executable = found
    script = found.hasPath ? ScriptInterpreter(path: path, file: file)?.script(of: files) : nil
  }

  /// Whether a process has the namespaces of this one.
  private static func isHere(_ files: ProcessFiles) -> Bool {
    !ownNamespaces.isEmpty && ownNamespaces.allSatisfy { files.namespace($0) == $1 }
  }

  /// Empty: they can't be read.
  private static let ownNamespaces: [ProcessFiles.Namespace: FileID] = {
    let own = ProcessFiles(CurrentProcess.number)
    let all = ProcessFiles.Namespace.allCases.map { ($0, own.namespace($0)) }
    guard all.allSatisfy({ $0.1 != nil }) else { return [:] }
    return Dictionary(uniqueKeysWithValues: all.compactMap { name, file in file.map { (name, $0) } })
  }()

  private static func parents(of stat: ProcessFiles.Stat) -> [String] {
    var (parents, next) = ([String](), stat.parent)
    while let number = next, number > 0, parents.count < 8 {
      let files = ProcessFiles(number)
      guard let stat = files.status else { break }
      parents.append("\(files.executablePath ?? "[\(stat.name)]") (\(number))")
      next = stat.parent
    }
    return parents
  }
}
