import Testing

extension World {
  /// Runs a program to its end, in the folder outside the mount.
  func run(
    _ arguments: [String], sending bytes: [UInt8] = [], within duration: Duration = .seconds(30)
  ) throws -> Output {
    try Program(arguments, environment: environment, directory: outside)
      .finish(sending: bytes, within: duration)
  }

  /// Runs a script of the shell; `$MOUNT`, `$CONFIG`, `$DATA` and `$OUT` are the folders' paths.
  func sh(_ script: String, sending bytes: [UInt8] = [], within duration: Duration = .seconds(30)) throws
    -> Output
  {
    try run(["/bin/bash", "-c", script], sending: bytes, within: duration)
  }

  /// Runs a script that has to print this, say nothing, and succeed.
  func check(
    _ script: String, prints text: String = "", sending bytes: [UInt8] = [],
    within duration: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh(script, sending: bytes, within: duration)
    let expected = Output(status: 0, bytes: Array(text.utf8), error: "")
    #expect(output == expected, "\(script)", sourceLocation: sourceLocation)
  }
}

extension MountedKeyhole {
  /// Starts a program in the mount's own folder.
  func launch(_ arguments: [String]) throws -> Program {
    try Program(arguments, environment: world.environment, directory: mount)
  }

  /// Runs a script of the shell in the mount's own folder.
  func sh(_ script: String, sending bytes: [UInt8] = [], within duration: Duration = .seconds(30)) throws
    -> Output
  {
    try launch(["/bin/bash", "-c", script]).finish(sending: bytes, within: duration)
  }

  /// Runs a script that has to print this, say nothing, and succeed.
  func check(
    _ script: String, prints text: String = "", sending bytes: [UInt8] = [],
    within duration: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh(script, sending: bytes, within: duration)
    let expected = Output(status: 0, bytes: Array(text.utf8), error: "")
    #expect(output == expected, "\(script)", sourceLocation: sourceLocation)
  }

  /// Runs a script that has to fail, print nothing, and name this reason on standard error.
  func refuses(
    _ script: String, _ reason: Errno, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try sh(script)
    #expect(output.status != 0, "\(script)", sourceLocation: sourceLocation)
    #expect(output.bytes.isEmpty, "\(script)", sourceLocation: sourceLocation)
    #expect(output.error.contains(reason.description), "\(script)", sourceLocation: sourceLocation)
  }

  /// The content of a path. Read here: starting a reader would close a copy of every open handle, which commits.
  func cat(_ path: String) throws -> String {
    var text = ""
    let error = failure { text = try System.text(self / path) }
    return error.map { "cat: \($0.description)" } ?? text
  }

  /// The size of a path in another process.
  func size(_ path: String) throws -> Int? {
    Int(try launch(["/usr/bin/stat", "-c", "%s", path]).finish().text.dropLast())
  }
}
