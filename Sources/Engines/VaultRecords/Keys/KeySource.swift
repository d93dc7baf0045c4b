import Crypto
import Model
package import SecretMemory

/// The key for a slot: a key file, a passphrase, or both.
package protocol KeySource: ~Copyable {
  var kind: KeySlot.Kind { get }

  /// Parameters for a new slot: salts and costs.
  func makeParameters() -> [UInt8]

  /// The input from which the keys of a slot are derived; its parameters are hostile input. - Throws: `damaged`.
  func input(_ parameters: [UInt8]) throws -> KeyInput
}

/// The bytes of a key file.
package struct KeyFileSource: KeySource, ~Copyable {
  package static let length = 32
  private static let saltLength = 32

  package let bytes: SecretBytes

  package init(bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  package var kind: KeySlot.Kind { .keyFile }

  package func makeParameters() -> [UInt8] {
    (0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max) }
  }

  package func input(_ parameters: [UInt8]) throws -> KeyInput {
    guard parameters.count == Self.saltLength else { throw StoreError.damaged(what: "a key slot") }
    var input = try KeyInput(salt: parameters)
    try input.append(bytes)
    return input
  }
}

/// A passphrase, alone or with a key file: then neither opens the slot without the other.
package struct PassphraseSource: KeySource, ~Copyable {
  package let passphrase: SecretBytes
  package let keyFile: SecretBytes?
  /// The cost of a new slot.
  package var cost = PassphraseCost.standard

  package init(passphrase: consuming SecretBytes, keyFile: consuming SecretBytes?) {
    self.passphrase = passphrase
    self.keyFile = keyFile
  }

  package var kind: KeySlot.Kind {
    switch keyFile {
    case .some: .passphraseAndKeyFile
    case .none: .passphrase
    }
  }

  package func makeParameters() -> [UInt8] {
    PassphraseParameters(cost).bytes
  }

  package func input(_ parameters: [UInt8]) throws -> KeyInput {
    let parameters = try PassphraseParameters(parameters)
    var input = try KeyInput(salt: parameters.salt)
    try input.append(parameters.derive(passphrase))
    switch keyFile {
    case .some(let file): try input.append(file)
    case .none: break
    }
    return input
  }
}
