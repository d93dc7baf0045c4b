package import Model

/// A question of ssh, git or sudo to an askpass program, by its exact text.
///
/// A server can choose texts too (keyboard-interactive, RFC 4256); OpenSSH puts `(USER@HOST) ` before those, so they are
/// none of these.
package enum AskpassPrompt: Hashable, Sendable {
  /// ssh(1), ssh-add(1): the passphrase of a private key.
  case passphrase(key: ExactString)
  /// ssh-add(1): the passphrase that it was given was wrong.
  case passphraseAgain
  /// ssh(1): the password of a user on a host.
  case login(user: ExactString, host: ExactString)
  /// git(1): a user's name, of `https://HOST`.
  case gitUser(url: ExactString)
  /// git(1): the password of `https://USER@HOST`.
  case gitPassword(url: ExactString)
  /// sudo(8): the user's own password.
  case sudo(user: ExactString)
  /// Any other text: no secret is given for it.
  case unknown

  /// By the text that the program gives as its first argument.
  package init(_ text: String) {
    self = Self.known(text) ?? .unknown
  }

  private static func known(_ text: String) -> AskpassPrompt? {
    guard text.utf8.span.firstLineBreak == nil else { return nil }
    if let key = inner(text, "Enter passphrase for key '", "': ") { return .passphrase(key: key) }
    if let user = inner(text, "[sudo] password for ", ": "), !user.utf8.contains(0x20) {
      return .sudo(user: user)
    }
    if let url = inner(text, "Username for '", "': ") { return .gitUser(url: url) }
    if let url = inner(text, "Password for '", "': ") { return .gitPassword(url: url) }
    if inner(text, "Bad passphrase, try again for ", ": ") != nil { return .passphraseAgain }
    if let key = keyOfAgent(text) { return .passphrase(key: key) }
    return login(text)
  }

  /// `Enter passphrase for PATH: ` of ssh-add, which says also `(will confirm each use)`.
  private static func keyOfAgent(_ text: String) -> ExactString? {
    guard let rest = inner(text, "Enter passphrase for ", ": ") else { return nil }
    let path = inner(rest.string, "", " (will confirm each use)") ?? rest
    return path.utf8.first == UInt8(ascii: "/") ? path : nil
  }

  /// `USER@HOST's password: `
  private static func login(_ text: String) -> AskpassPrompt? {
    guard let place = inner(text, "", "'s password: "), let at = place.utf8.lastIndex(of: UInt8(ascii: "@")),
      let user = ExactString(utf8: place.utf8[..<at]), !user.isEmpty,
      let host = ExactString(utf8: place.utf8[place.utf8.index(after: at)...]), !host.isEmpty,
      !place.utf8.contains(where: { $0 == 0x20 || $0 == UInt8(ascii: "(") })
    else { return nil }
    return .login(user: user, host: host)
  }

  /// The part between two texts; nil: it does not begin and end like this, or nothing is between.
  private static func inner(_ text: String, _ before: String, _ after: String) -> ExactString? {
    let bytes = text.utf8
    guard bytes.starts(with: before.utf8), bytes.count > before.utf8.count + after.utf8.count,
      bytes.suffix(after.utf8.count).elementsEqual(after.utf8)
    else { return nil }
    return ExactString(utf8: bytes.dropFirst(before.utf8.count).dropLast(after.utf8.count))
  }
}

// MARK: Items

extension AskpassPrompt {
  /// The identity of the item with the answer; nil: it is found otherwise, or there is none.
  package var identity: ItemIdentity? {
    switch self {
    case .passphrase(let key): .generic(service: "ssh", account: key)
    case .login(let user, let host):
      .internet(InternetIdentity(server: host, account: user, protocol: "ssh"))
    case .sudo(let user): .generic(service: "sudo", account: user)
    case .gitUser, .gitPassword, .passphraseAgain, .unknown: nil
    }
  }

  /// The lines that git would send to a helper for the same; nil: the prompt is none of git's.
  package var gitLines: String? {
    switch self {
    case .gitUser(let url), .gitPassword(let url): Self.lines(url.string)
    default: nil
    }
  }

  private static func lines(_ url: String) -> String? {
    guard let colon = url.firstRange(of: "://"), colon.lowerBound != url.startIndex else { return nil }
    let rest = url[colon.upperBound...]
    let place = rest.prefix { $0 != "/" }
    let path = rest.dropFirst(place.count).drop { $0 == "/" }
    var lines = "protocol=\(url[..<colon.lowerBound])\n"
    if let at = place.lastIndex(of: "@") {
      guard let user = decoded(place[..<at]) else { return nil }
      lines += "username=\(user)\nhost=\(place[place.index(after: at)...])\n"
    } else {
      lines += "host=\(place)\n"
    }
    guard !path.isEmpty else { return lines }
    return decoded(path).map { lines + "path=\($0)\n" }
  }

  /// The text of percent-encoded bytes (RFC 3986); nil: it is not UTF-8, or has a line break.
  private static func decoded(_ text: Substring) -> String? {
    var (bytes, rest) = ([UInt8](), Array(text.utf8)[...])
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else {
        return nil
      }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    guard bytes.span.firstLineBreak == nil else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}
