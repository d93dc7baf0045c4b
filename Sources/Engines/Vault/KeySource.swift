import Crypto
import Model
import SecretMemory

/// What opens a slot: a key file, a passphrase, or both.
protocol KeySource: ~Copyable {
  var kind: KeySlot.Kind { get }

  /// Parameters for a new slot: salts and costs.
  func makeParameters() -> [UInt8]

  /// What the keys of a slot with these parameters, which are hostile input, are derived from. - Throws: `damaged`.
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
  /// What a new slot costs.
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
