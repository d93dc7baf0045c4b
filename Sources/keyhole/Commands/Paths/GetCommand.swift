import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Tree

struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print a setting or a secret, exactly as its file holds it.",
    discussion: """
      On a terminal a secret that has no line end gets one. An item stands for its secret, and SERVICE/ACCOUNT for the \
      item.
      """)

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "A key or an item: a path of the tree or of a mount, or SERVICE/ACCOUNT.", completion: .treePath)
  var path: String

  func run() throws {
    quiet.apply()
    try Self.print(path)
  }

  /// Does not always return.
  static func print(_ path: String) throws {
    if let value = try MountedSetting(path)?.read() {
      StandardOutput.write(value.span)
      return endLine(value.last == 0x0A)
    }
    allowUnlockedMemoryWithoutSwap()
    var isEnded = true
    if let secret = try MountedSecret(path), secret.read({ isEnded = write($0) }) { return endLine(isEnded) }
    let opened = try OpenedPath(path, .items, .one)
    if let text = try RunningMount.content(at: opened.path) { return StandardOutput.write(text) }
    try write(opened.path.ofValue, of: opened.session)
    opened.session.endProcess()
  }

  private static func write(_ path: TreePath, of session: TreeSession) throws {
    var chunk = try SecretBytes(pinnable: 16 * 1024)
    var isEnded = true
    try session.read(path) { bytes in
      var start = 0
      while start < bytes.count {
        let piece = bytes.extracting(start..<min(bytes.count, start + chunk.count))
        var room = chunk.mutableSpan
        room.copy(piece, at: 0)
        isEnded = write(chunk.span.extracting(..<piece.count))
        start += piece.count
      }
    }
    endLine(isEnded)
  }

  /// Returns whether the last byte ends a line.
  private static func write(_ bytes: Span<UInt8>) -> Bool {
    StandardOutput.write(bytes)
    return bytes.isEmpty || bytes[bytes.count - 1] == 0x0A
  }

  /// Else a shell's prompt would stand behind the value.
  private static func endLine(_ isEnded: Bool) {
    if !isEnded, StandardStream.output.isTerminal { StandardOutput.print("") }
  }
}
