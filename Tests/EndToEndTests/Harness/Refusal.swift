import Testing

/// A row of Documentation/ERRORS.md: what is refused, how a tool says it, and how Keyhole explains it.
struct Refusal: Sendable {
  /// Stands in everything that these scripts write: it must not come back in an explanation.
  static let marker = "marker-content"

  let error: Errno
  let script: String
  /// How the tool begins its message; nil: with the reason alone.
  let tool: String?
  /// Where the tool has words of its own.
  let words: String?
  /// The path and a part of the reason in `keyhole status`; nil: not listed, because it explains itself.
  let told: (path: String, reason: String)?

  init(
    _ error: Errno, _ script: String, by tool: String?, words: String? = nil,
    told: (path: String, reason: String)?
  ) {
    self.error = error
    self.script = script
    self.tool = tool
    self.words = words
    self.told = told
  }
}

extension MountedKeyhole {
  /// Runs what has to be refused, and looks at all that is said of it.
  func expect(
    _ refusal: Refusal, within duration: Duration = .seconds(30),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let before = try refused()
    let output = try sh(refusal.script, within: duration)
    let comment = Comment(rawValue: "\(refusal.script): \(output)")
    #expect(output.status != 0, comment, sourceLocation: sourceLocation)
    let line = output.error.split(separator: "\n").first ?? ""
    #expect(
      line.hasSuffix(refusal.words ?? refusal.error.description), comment, sourceLocation: sourceLocation)
    if let tool = refusal.tool {
      #expect(line.contains("\(tool): "), comment, sourceLocation: sourceLocation)
    }
    let told = try refused()
    #expect(!told.contains { $0.contains(Refusal.marker) }, comment, sourceLocation: sourceLocation)
    guard let (path, reason) = refusal.told else {
      #expect(told == before, comment, sourceLocation: sourceLocation)
      return
    }
    let last = told.last ?? ""
    #expect(last.contains("  \(path)  "), "\(comment) \(last)", sourceLocation: sourceLocation)
    #expect(last.contains(reason), "\(comment) \(last)", sourceLocation: sourceLocation)
  }

  /// The lines of `keyhole status` about refusals.
  func refused() throws -> [String] {
    let status = try world.run([Products.keyhole, "status"])
    return status.lines.filter { $0.hasPrefix("refused ") }
  }
}
