import Platform
package import SecretMemory

/// The secrets that a program is started with: variables, files and descriptors, and the patterns to mask.
package struct ProgramSecrets: ~Copyable {
  /// `NAME=value`, with a NUL byte behind each.
  private(set) var variables: SecretBytes
  private(set) var files: [(file: SecretFile, number: Int32)] = []
  private var patterns: MaskPatterns.Builder?
  /// How many values are not masked: too short, or too long.
  package private(set) var unmasked = (short: 0, long: 0)

  /// - Throws: `exhausted`: there is no more locked memory.
  package init(masking isMasking: Bool) throws(SecretMemoryError) {
    let none = try SecretBytes()
    patterns = isMasking ? try MaskPatterns.Builder() : nil
    variables = none
  }

  /// Adds a variable. Neither name nor value may have a NUL byte.
  package mutating func add(_ name: String, _ value: Span<UInt8>) throws(SecretMemoryError) {
    // At once: growing in steps would leave room that is not used.
    let start = variables.count
    let name = Array(name.utf8) + [UInt8(ascii: "=")]
    try variables.resize(to: start + name.count + value.count + 1)
    var room = variables.mutableSpan
    room.copy(name.span, at: start)
    room.copy(value, at: start + name.count)
    try mask(value)
  }

  /// Adds a descriptor from which a value can be read, and for a name the variable with its path.
  package mutating func add(
    _ value: Span<UInt8>, as number: Int32, pathIn name: String?
  ) throws {
    files.append((try SecretFile(value), number))
    if let name { try addPath("/proc/self/fd/\(number)", in: name) }
    try mask(value)
  }

  /// The search for the values that are masked; nil: none is.
  mutating func takePatterns() -> MaskPatterns? {
    guard let builder = patterns.take(), !builder.isEmpty else { return nil }
    return builder.finish()
  }

  /// Wipes the variables, once the program has them.
  mutating func forgetVariables() throws(SecretMemoryError) { try variables.resize(to: 0) }

  private mutating func addPath(_ path: String, in name: String) throws(SecretMemoryError) {
    let text = Array("\(name)=\(path)".utf8) + [0]
    try variables.append(text.span)
  }

  private mutating func mask(_ value: Span<UInt8>) throws(SecretMemoryError) {
    guard patterns != nil, !value.isEmpty else { return }
    if value.count < SecretPatterns.shortest {
      unmasked.short += 1
    } else if value.count > SecretPatterns.longest {
      unmasked.long += 1
    } else {
      try patterns?.add(formsOf: value)
    }
  }
}
