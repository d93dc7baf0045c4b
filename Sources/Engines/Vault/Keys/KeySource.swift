import Crypto
import Model
import SecretMemory

/// The key for a slot: a key file, a passphrase, or both.
protocol KeySource: ~Copyable {
  var kind: KeySlot.Kind { get }

  /// Parameters for a new slot: salts and costs.
  func makeParameters() -> [UInt8]

  /// The input from which the keys of a slot are derived; its parameters are hostile input. - Throws: `damaged`.
  func input(_ parameters: [UInt8]) throws -> KeyInput
}

/// The bytes of a key file.
struct KeyFileSource: KeySource, ~Copyable {
  static let length = 32
  private static let saltLength = 32

  let bytes: SecretBytes

  var kind: KeySlot.Kind { .keyFile }

  func makeParameters() -> [UInt8] {
    (0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max) }
  }

  func input(_ parameters: [UInt8]) throws -> KeyInput {
    guard parameters.count == Self.saltLength else { throw StoreError.damaged(what: "a key slot") }
    var input = try KeyInput(salt: parameters)
    try input.append(bytes)
    return input
  }
}

/// A passphrase, alone or with a key file: then neither opens the slot without the other.
struct PassphraseSource: KeySource, ~Copyable {
  let passphrase: SecretBytes
  let keyFile: SecretBytes?
  /// The cost of a new slot.
  var cost = PassphraseCost.standard

  var kind: KeySlot.Kind {
    switch keyFile {
    case .some: .passphraseAndKeyFile
    case .none: .passphrase
    }
  }

  func makeParameters() -> [UInt8] {
    PassphraseParameters(cost).bytes
  }

  func input(_ parameters: [UInt8]) throws -> KeyInput {
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
