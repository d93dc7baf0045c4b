/// The fields of a KeePass entry that say how its one-time codes are computed, where they are not in the field `otp`: those of
/// KeePass since 2.47 (`TimeOtp-…`, `HmacOtp-…`), and of the plugin KeeTrayTOTP (`TOTP Seed`, `TOTP Settings`).
struct KeePassCodeFields {
  private enum Name: String {
    case timeText = "TimeOtp-Secret"
    case timeHexadecimal = "TimeOtp-Secret-Hex"
    case timeBase32 = "TimeOtp-Secret-Base32"
    case timeBase64 = "TimeOtp-Secret-Base64"
    case length = "TimeOtp-Length"
    case period = "TimeOtp-Period"
    case algorithm = "TimeOtp-Algorithm"
    case counterText = "HmacOtp-Secret"
    case counterHexadecimal = "HmacOtp-Secret-Hex"
    case counterBase32 = "HmacOtp-Secret-Base32"
    case counterBase64 = "HmacOtp-Secret-Base64"
    case counter = "HmacOtp-Counter"
    case seed = "TOTP Seed"
    case settings = "TOTP Settings"

    /// nil: it is no key.
    var encoding: OneTimeKey.Encoding? {
      switch self {
      case .timeText, .counterText, .timeBase64, .counterBase64: .text
      case .timeHexadecimal, .counterHexadecimal: .hexadecimal
      case .timeBase32, .counterBase32, .seed: .base32
      case .length, .period, .algorithm, .counter, .settings: nil
      }
    }

    var isCounterBased: Bool { rawValue.hasPrefix("HmacOtp") }
  }

  private var keys: [(name: Name, value: SecretSlice)] = []
  private var settings: [Name: String] = [:]

  /// Whether the field is one of them; then it is kept.
  mutating func take(_ field: String, _ value: SecretSlice) throws(FormatError) -> Bool {
    guard let name = Name(rawValue: field) else { return false }
    if name.encoding != nil {
      guard !value.isEmpty else { return true }
      let isBase64 = name == .timeBase64 || name == .counterBase64
      keys.append((name, isBase64 ? SecretSlice(value.source, value.range, .base64) : value))
    } else {
      settings[name] = try value.text()
    }
    return true
  }

  /// Adds the codes to the entry. A key with settings that no `otpauth:` URI has becomes an item of its own, and the settings
  /// attributes, as nothing may be lost.
  func add(to login: inout LoginRecord) throws(FormatError) {
    var used: Set<Name> = []
    for (name, value) in keys {
      guard let parameters = parameters(of: name), let encoding = name.encoding else {
        login.addOtherCode(value)
        continue
      }
      var key = OneTimeKey()
      (key.encoding, key.isCounterBased, key.parameters) = (encoding, name.isCounterBased, parameters)
      key.mayHaveScheme = false
      if try login.addCode(value, key) { used.formUnion(names(of: name)) }
    }
    for (name, value) in settings.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where !used.contains(name)
    {
      login.addField(name.rawValue, value)
    }
  }

  /// The settings that hold for a key.
  private func names(of key: Name) -> Set<Name> {
    if key == .seed { return [.settings] }
    return key.isCounterBased ? [.counter] : [.length, .period, .algorithm]
  }

  /// Each with `&` before it; nil: there is one that a URI can't have.
  private func parameters(of key: Name) -> String? {
    if key == .seed { return settings[.settings].map(Self.plugin) ?? "" }
    if key.isCounterBased {
      guard let text = settings[.counter], !text.isEmpty else { return "&counter=0" }
      return Digits.number(text.utf8).map { "&counter=\($0)" }
    }
    var parameters = ""
    for (name, parameter) in [(Name.length, "digits"), (.period, "period")] {
      guard let text = settings[name], !text.isEmpty else { continue }
      guard let number = Digits.number(text.utf8), number > 0 else { return nil }
      parameters += "&\(parameter)=\(number)"
    }
    guard let algorithm = settings[.algorithm], !algorithm.isEmpty else { return parameters }
    let algorithms = ["HMAC-SHA-1": "SHA1", "HMAC-SHA-256": "SHA256", "HMAC-SHA-512": "SHA512"]
    return algorithms[algorithm.uppercased()].map { "\(parameters)&algorithm=\($0)" }
  }

  /// Period and number of digits, `30;6`; `S` instead of the number stands for Steam's codes. An address of a clock may follow.
  private static func plugin(_ text: String) -> String? {
    let words = text.split(separator: ";", omittingEmptySubsequences: false)
    guard words.count >= 2, let period = Digits.number(words[0].utf8), period > 0 else { return nil }
    if words[1] == "S" { return "&period=\(period)\(OneTimeKey.steam)" }
    return Digits.number(words[1].utf8).map { "&period=\(period)&digits=\($0)" }
  }
}
