import ArgumentParser
import Model
import Platform
import ProgramRunning
import Prompting
import SecretMemory
import Service
import Store

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Run a program with secrets in its variables, files or descriptors.",
    discussion: """
      The command and its arguments stand behind `--`; before it, a PATH without an option is one of --env. Everything is opened before it is started; where something can't \
      be, nothing is started.

      PATH without NAME stands for variables of the same names: an item for one that is named as its account, a service, a \
      server or a suite for all that is in it, views/NAME for those in that file. A line end at the end of a value is taken off for a variable, and not for \
      a file. Every program of yours can read the variables of another one; a file is private to the program and to what \
      it starts.

      The command has your terminal, standard streams, limits and working directory. Its exit code is passed on; where a \
      signal ends it, that signal ends `run` too, which a shell reports as 128 and its number. `run` itself fails with \
      125; 126: the command was found and can't be executed; 127: it was not found.
      """)

  /// The exit code of its own failures, as of env(1).
  static let failure: Int32 = 125

  @Option(
    name: .customLong("env"),
    help: ArgumentHelp(
      "A variable, or those of a service, a server or a suite. It may be given again.",
      valueName: "name=path|path"),
    completion: .treePath)
  var variables: [String] = []

  @Option(
    help: ArgumentHelp(
      "A file in memory, whose path is in the variable NAME. It can't be changed. It may be given again.",
      valueName: "name=path"),
    completion: .treePath)
  var file: [String] = []

  @Option(
    help: ArgumentHelp(
      "A descriptor from which the value can be read. It may be given again.", valueName: "n=path"),
    completion: .treePath)
  var fd: [String] = []

  @Option(
    help: ArgumentHelp(
      "The variables of a view of format env. It may be given again. A view of another format is a file: --file NAME=views/NAME.",
      valueName: "name"),
    completion: .treePath)
  var view: [String] = []

  @Flag(
    help: """
      Show [masked] in place of the values, of their lines and of their usual encodings in the output. It guards against \
      accidents; a command that means to show a secret can. Values and lines under 8 bytes, values over 64 KiB, encodings of \
      single lines, base64 and hexadecimal digits in lines under 16 characters, values that are written in pieces with 20 ms or more \
      between them, the alternate screen of editors, and a value that has changed without a restart are not masked. A process that the \
      command leaves behind can't write there any more, and ends by SIGPIPE when it does. Where output can't be written, and the command ends with 0, \
      `run` fails with 125, or by SIGPIPE where the reader is gone.
      """)
  var mask = false

  @Option(
    help: ArgumentHelp(
      """
      When a value changes, send the command a signal (HUP, USR1 …), or `restart` it with the new values. A signal leaves \
      its variables and files as they are: it is for a program that reads its secrets again from a mount.
      """,
      valueName: "signal|restart"),
    completion: .list(["HUP", "USR1", "USR2", "TERM", "restart"]))
  var onChange: String?

  @Argument(
    parsing: .postTerminator, help: "The command and its arguments, behind `--`.",
    completion: .treePathBeforeCommand)
  var command: [String] = []

  func validate() throws {
    guard !command.isEmpty else { throw ValidationError("the command to run stands behind `--`") }
    _ = try reaction
  }

  func run() throws {
    let ending: ProgramRun.Ending
    do {
      ending = try runProgram()
    } catch let failure as Failure {
      failure.report()
      CurrentProcess.exit(Self.failure)
    } catch let failure as ProgramStart.Failure {
      CurrentProcess.exit(report(failure))
    } catch let error as Errno {
      Failure(nil, "nothing was started: \(error.description)").report()
      CurrentProcess.exit(Self.failure)
    } catch is SecretMemoryError {
      Failure(nil, "there is not enough locked memory for the values; `ulimit -l` sets the limit, in KiB")
        .report()
      CurrentProcess.exit(Self.failure)
    }
    switch ending {
    case .exited(let code): CurrentProcess.exit(code)
    // A script that Ctrl-C reaches goes on where its command exits with a code, and ends where a signal ended it.
    case .signal(let number): Signals.end(byNumber: number)
    }
  }
}

extension RunCommand {
  private var values: [ProgramValue] {
    get throws {
      try variables.map { ProgramValue(variable: $0) } + view.map { ProgramValue(view: $0) }
        + file.map { try ProgramValue(file: $0) }
        + fd.map { try ProgramValue(descriptor: $0) }
    }
  }

  private var reaction: ProgramRun.Reaction? {
    get throws {
      guard let onChange, onChange != "restart" else { return onChange == nil ? nil : .restart }
      guard let number = SignalQueue.number(named: onChange) else {
        throw ValidationError("--on-change takes a signal, as HUP or USR1, or `restart`, and not \(onChange)")
      }
      return .signal(number)
    }
  }

  private func runProgram() throws -> ProgramRun.Ending {
    let program = try foundProgram()
    // Without a mount this process asks.
    IdentifiedCallers.remember(Caller.current.identity(), starting: Arguments.executableOfProgram())
    let values = try ProgramValues(self.values)
    let watch = try reaction.map { _ in try ValueWatch(values) }
    let secrets = try fetch(values)
    if mask { noteUnmasked(secrets.unmasked) }
    if watch == nil { values.session.closeVault() }
    let start = ProgramStart(program, Arguments.ofProgram(), .ofProcess)
    let run = try ProgramRun(start, secrets, changes: changes(watch, values))
    let ending = try withExtendedLifetime(watch) { try run.run() }
    return run.loss.map { Self.ending(ending, losing: $0) } ?? ending
  }

  private func fetch(_ values: ProgramValues) throws -> ProgramSecrets {
    let bar = ProgressBar(total: nil, "opening values")
    defer { bar.end() }
    return try values.fetch(masking: mask) { bar.show($0, of: $1) }
  }

  /// The exit code 0 would pass a part of the output for all of it.
  private static func ending(_ ending: ProgramRun.Ending, losing error: Errno) -> ProgramRun.Ending {
    // As a program in a pipeline ends whose reader has gone.
    let isByPipe = error == .EPIPE && !Signals.ignores(.pipe)
    if !isByPipe {
      Failure(nil, "output of the command is lost, as it can't be written: \(error.description)").report()
    }
    guard ending == .exited(code: 0) else { return ending }
    return isByPipe ? .signal(Signals.Signal.pipe.rawValue) : .exited(code: failure)
  }

  /// - Throws: `ProgramStart.Failure`: nothing is opened for a program that there is not.
  private func foundProgram() throws -> FoundProgram {
    switch Arguments.foundProgram {
    case .success(let program)?: return program
    case .failure(let error)?: throw ProgramStart.Failure(errno: error, isOfProgram: true)
    case nil: throw ProgramStart.Failure(errno: .ENOENT, isOfProgram: true)
    }
  }

  private func changes(_ watch: ValueWatch?, _ values: ProgramValues) throws -> ProgramRun.Changes? {
    guard let watch, let reaction = try reaction else { return nil }
    return ProgramRun.Changes(reaction, watch.news) {
      do {
        return try values.fetch(masking: mask)
      } catch {
        let reason = (error as? Failure)?.line ?? "there is not enough locked memory"
        StandardError.write("keyhole: the command goes on with the old values: \(reason)\n")
        return nil
      }
    }
  }

  private func noteUnmasked(_ unmasked: (short: Int, long: Int)) {
    func note(_ number: Int, _ reason: String) {
      guard number > 0 else { return }
      StandardError.write(
        "keyhole: \(number == 1 ? "a value is" : "\(number) values are") not masked: \(reason)\n")
    }
    note(unmasked.short, "shorter than \(SecretPatterns.shortest) bytes")
    note(unmasked.long, "longer than \(SecretPatterns.longest / 1024) KiB")
  }

  private func report(_ failure: ProgramStart.Failure) -> Int32 {
    let name = command.first ?? ""
    switch (failure.isOfProgram, failure.errno) {
    case (true, .ESTALE):
      Failure(name, "another file has come to its path since it was looked up; nothing was started").report()
      return 126
    case (true, .ENOENT):
      Failure(name, "the command was not found").report()
      return 127
    case (true, .E2BIG):
      Failure(name, "variables and arguments are too long together; give values as files: --file NAME=PATH")
        .report()
      return Self.failure
    case (true, let error):
      Failure(name, "it can't be executed: \(error.description)").report()
      return 126
    case (false, let error):
      Failure(name, "it can't be started: \(error.description)").report()
      return Self.failure
    }
  }
}

/// The leader of a session of a program. `run` starts it.
struct RunMonitorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run-monitor", abstract: "Stand for a program in its session.", shouldDisplay: false)

  @Argument var process: Int32

  func run() { ProgramMonitor.run(process) }
}
