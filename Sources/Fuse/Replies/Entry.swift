import CFuse

/// A name's answer: which node it is, its attributes, and how long the kernel may believe both.
///
/// In libfuse: `fuse_entry_param`.
public struct Entry: Sendable {
  /// The number by which the kernel asks for the file from now on; each reply with it counts as one lookup.
  public var node: NodeID
  /// Tells a number's second use from its first; 0 where numbers are never used again.
  public var generation: UInt64
  /// The attributes that the kernel caches with the name.
  public var attributes: Attributes
  /// In seconds. 0: asked again each time.
  public var attributesTimeout: Double
  /// In seconds. 0: looked up again each time.
  public var entryTimeout: Double

  /// - Parameters:
  ///   - node: the number of the file.
  ///   - generation: tells a number's second use from its first; 0 where numbers are never used again.
  ///   - attributes: the file's attributes.
  ///   - attributesTimeout: how long the kernel may cache the attributes, in seconds.
  ///   - entryTimeout: how long the kernel may cache the name, in seconds.
  public init(
    node: NodeID, generation: UInt64 = 0, attributes: Attributes, attributesTimeout: Double,
    entryTimeout: Double
  ) {
    self.node = node
    self.generation = generation
    self.attributes = attributes
    self.attributesTimeout = attributesTimeout
    self.entryTimeout = entryTimeout
  }
}

extension Entry {
  var parameters: fuse_entry_param {
    fuse_entry_param(
      ino: node.rawValue, generation: generation, attr: attributes.status, attr_timeout: attributesTimeout,
      entry_timeout: entryTimeout)
  }
}
