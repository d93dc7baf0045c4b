/// Whether what was written so far can still become a value of a type.
///
/// Fed piece by piece, in order. What `SettingCodec.value(of:as:)` accepts, this accepts at every step;
/// what this refuses, no further bytes could mend. Scalars take constant memory (a real as much as its
/// digits), JSON as much as its values; an XML property list is judged by the codec alone.
public struct ContentPrefix: Sendable {
  /// The type that the bytes are to become a value of.
  public let type: SettingType
  private var reading: any ContentReading
  private var isPossible = true

  /// Begins before the first byte.
  public init(_ type: SettingType) {
    self.type = type
    reading = type.reading
  }

  /// Takes the next bytes. False, from then on: nothing that could follow makes it a value.
  public mutating func append(_ bytes: Span<UInt8>) -> Bool {
    isPossible = isPossible && reading.append(bytes)
    return isPossible
  }
}
