package import SecretMemory

/// The searches for the forms of secrets: one in the output as it is, and one for digits, which pass over the ends of lines.
package struct MaskPatterns: Sendable {
  let text: PatternAutomaton
  /// Base64 and hexadecimal digits: programs break them into lines.
  let digits: PatternAutomaton

  /// Takes secrets before the search begins.
  package struct Builder: ~Copyable {
    private var text: PatternAutomaton.Builder
    private var digits: PatternAutomaton.Builder

    package init() throws(SecretMemoryError) {
      let first = try PatternAutomaton.Builder()
      let second = try PatternAutomaton.Builder()
      text = first
      digits = second
    }

    /// Whether there is no pattern.
    package var isEmpty: Bool { text.isEmpty && digits.isEmpty }

    /// Adds the forms of a secret. - Throws: `exhausted`: there is no more locked memory.
    package mutating func add(formsOf secret: Span<UInt8>) throws(SecretMemoryError) {
      try SecretPatterns.forEach(of: secret) { pattern, kind throws(SecretMemoryError) in
        try add(pattern, kind)
      }
    }

    mutating func add(_ pattern: Span<UInt8>, _ kind: SecretPatterns.Kind) throws(SecretMemoryError) {
      switch kind {
      case .text: try text.add(pattern)
      case .digits: try digits.add(pattern)
      }
    }

    /// The searches for what was added.
    package consuming func finish() -> MaskPatterns {
      MaskPatterns(text: text.finish(), digits: digits.finish())
    }
  }
}
