import Foundation
import Glibc
import Platform
import Synchronization
import Testing

@testable import Store

/// The files of proc(5) of processes that are started here.
@Suite(.timeLimit(.minutes(1))) struct CallerTests {
  /// A process that waits until its standard input ends.
  private final class Waiting {
    let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// `words`: the program and its arguments. It prints a line when it has begun to wait, at once or after `input`.
    init(_ words: [String], in folder: String = "/", input line: String? = nil) throws {
      process.executableURL = URL(fileURLWithPath: words[0])
      process.arguments = Array(words.dropFirst())
      process.currentDirectoryURL = URL(fileURLWithPath: folder)
      (process.standardInput, process.standardOutput) = (input, output)
      try process.run()
      if let line { input.fileHandleForWriting.write(Data((line + "\n").utf8)) }
      _ = output.fileHandleForReading.availableData
    }

    var identity: Caller.Identity { Caller(thread: process.processIdentifier).identity() }

    func say(_ line: String) {
      input.fileHandleForWriting.write(Data((line + "\n").utf8))
      _ = output.fileHandleForReading.availableData
    }

    func end() {
      try? input.fileHandleForWriting.close()
      process.waitUntilExit()
    }
  }

  /// A folder for one test.
  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  @Test func ownProcessIsIdentified() throws {
    let own = Caller.current.identity()
    #expect(own.process?.number == getpid() && own.user == getuid())
    #expect(own.executable?.file == FileID("/proc/self/exe") && own.executable?.hasPath == true)
    #expect(own.isUnchanged && own.obstacle == nil && !own.parents.isEmpty)
  }

  /// Each process that is remembered has a descriptor; those that have ended do not fill the table of a mount.
  @Test func endedProcessesKeepNoDescriptors() throws {
    func descriptors() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name))?.contains(
          "pidfd") == true
      }
    }
    let before = try descriptors()
    for _ in 0..<3 * IdentifiedCallers.mostWithoutSearch {
      let program = try Waiting(["/bin/sh", "-c", "echo ready; read line"])
      #expect(IdentifiedCallers.remember(program.identity))
      program.end()
    }
    // Other tests of this process have some for a moment.
    #expect(try descriptors() - before <= 2 * IdentifiedCallers.mostWithoutSearch)
  }

  /// A FUSE request names a thread.
  @Test func threadStandsForItsProcess() async throws {
    let found = Mutex<(thread: Int32, process: Caller.Identity.Process?)>((0, nil))
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      let thread = link?.split(separator: "/").last.flatMap { Int32($0) } ?? 0
      let process = Caller(thread: thread).identity().process
      found.withLock { $0 = (thread, process) }
      done.signal()
    }
    done.wait()
    let (thread, process) = found.withLock { $0 }
    #expect(thread != getpid() && process == Caller.current.identity().process)
  }

  @Test func unknownNumberIsUnidentified() {
    let unknown = Caller(thread: 0).identity()
    #expect(!unknown.isIdentified && unknown.process == nil && unknown.obstacle != nil && unknown.isUnchanged)
    #expect(Caller(thread: 0).process == nil)
  }

  /// The same process is another program after execve(2), and nothing after its end.
  @Test func otherProgramInTheSameProcessIsAChange() throws {
    let shell = try Waiting(["/bin/bash", "-c", "echo; read -r; exec cat"])
    let before = shell.identity
    #expect(before.isIdentified && before.isUnchanged)
    // The shell takes its line and becomes cat(1), which answers with the next one.
    shell.say("go\ncat")
    #expect(!before.isUnchanged)
    let after = shell.identity
    #expect(after.process == before.process && after.isUnchanged)
    shell.end()
    #expect(!after.isUnchanged)
  }

  /// Also where no rule may rely on the program, as a message bus has not vouched for it.
  @Test func otherProgramIsAChangeWhereItIsHidden() throws {
    let shell = try Waiting(["/bin/bash", "-c", "echo; read -r; exec cat"])
    defer { shell.end() }
    let hidden = shell.identity.withoutProgram(because: "test")
    #expect(!hidden.isIdentified && hidden.isUnchanged)
    shell.say("go\ncat")
    #expect(!hidden.isUnchanged)
  }

  /// The five forgeries of a rule for a script: none has its name.
  @Test func scriptIsTheFirstArgumentOfAnInstalledInterpreter() throws {
    try withFolder { folder in
      let script = folder + "/backup.sh"
      try "echo; read -r line\n".write(toFile: script, atomically: true, encoding: .utf8)
      func scriptOf(_ words: [String], in folder: String = "/", input: String? = nil) throws -> String? {
        let process = try Waiting(words, in: folder, input: input)
        defer { process.end() }
        return process.identity.script
      }
      #expect(try scriptOf(["/bin/bash", script]) == script)
      #expect(try scriptOf(["/bin/bash", "backup.sh"], in: folder) == folder + "/backup.sh")
      // A relative path counts from where the process was started, wherever it is now: a shell has its script open.
      let leaves = folder + "/leaves.sh"
      try "cd /tmp; echo; read -r line\n".write(toFile: leaves, atomically: true, encoding: .utf8)
      #expect(try scriptOf(["/bin/bash", "leaves.sh"], in: folder) == leaves)
      #expect(try scriptOf(["/bin/sh", "leaves.sh"], in: folder) == leaves)
      #expect(
        try scriptOf(["/bin/bash", "-c", "exec 10< /dev/null; exec /bin/sh leaves.sh"], in: folder) == leaves)
      if FileManager.default.isExecutableFile(atPath: "/usr/bin/python3") {
        let tool = folder + "/tool.py"
        try "print(flush=True);input()".write(toFile: tool, atomically: true, encoding: .utf8)
        #expect(try scriptOf(["/usr/bin/python3", tool]) == tool)
        #expect(try scriptOf(["/usr/bin/python3", "tool.py"], in: folder) == nil)
      }
      // A program that is only called like an interpreter.
      let shady = folder + "/sh"
      try FileManager.default.copyItem(atPath: "/bin/bash", toPath: shady)
      #expect(try scriptOf([shady, script]) == nil)
      #expect(try scriptOf(["/bin/bash", "-s", script], input: "echo; read -r line") == nil)
      #expect(try scriptOf(["/bin/bash", "-c", "echo; read -r line", script]) == nil)
      #expect(try scriptOf(["/usr/bin/perl", "-e$|=1;print qq(\\n);<STDIN>", script]) == nil)
      if FileManager.default.isExecutableFile(atPath: "/usr/bin/python3") {
        #expect(try scriptOf(["/usr/bin/python3", "-cprint(flush=True);input()", script]) == nil)
      }
    }
  }

  @Test(arguments: [
    ("bash", true), ("python3", true), ("python3.11", true), ("lua5.4", true), ("guile-3.0", true),
    ("perl5.36.0", true),
    ("shady", false), ("bashful", false), ("nodemon", false), ("python3.11-config", false),
    ("python3.", false),
    ("perl-", false), ("sh.1.2.3.4", false), ("3", false), ("", false), ("bash5x", false),
  ])
  func interpretersHaveExactNames(name: String, isInterpreter: Bool) {
    #expect(ScriptInterpreter.isInterpreter(name[...]) == isInterpreter)
  }

  /// A path that another file has taken is not shown as the program's.
  @Test func pathLeadsBackToTheFileOrSaysThatItDoesNot() throws {
    try withFolder { folder in
      let program = folder + "/program"
      try FileManager.default.copyItem(atPath: "/bin/bash", toPath: program)
      let process = try Waiting([program, "-c", "echo; read -r line"])
      defer { process.end() }
      #expect(process.identity.executable?.hasPath == true && process.identity.programName == program)
      try FileManager.default.moveItem(atPath: program, toPath: program + ".old")
      try FileManager.default.copyItem(atPath: "/bin/cat", toPath: program)
      #expect(process.identity.programName == program + ".old")
      try FileManager.default.removeItem(atPath: program + ".old")
      #expect(process.identity.executable?.hasPath == false)
      #expect(process.identity.programName.hasSuffix("(the file no longer has this path)"))
    }
  }
}
