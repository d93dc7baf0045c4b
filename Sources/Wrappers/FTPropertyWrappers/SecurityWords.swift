// Apple's names for protocols and authentication types, and Keyhole's words for them.
public import CoreFoundation

public let kSecAttrProtocolFTP = constant("ftp ")
public let kSecAttrProtocolFTPAccount = constant("ftpa")
public let kSecAttrProtocolHTTP = constant("http")
public let kSecAttrProtocolIRC = constant("irc ")
public let kSecAttrProtocolNNTP = constant("nntp")
public let kSecAttrProtocolPOP3 = constant("pop3")
public let kSecAttrProtocolSMTP = constant("smtp")
public let kSecAttrProtocolSOCKS = constant("sox ")
public let kSecAttrProtocolIMAP = constant("imap")
public let kSecAttrProtocolLDAP = constant("ldap")
public let kSecAttrProtocolAppleTalk = constant("atlk")
public let kSecAttrProtocolAFP = constant("afp ")
public let kSecAttrProtocolTelnet = constant("teln")
public let kSecAttrProtocolSSH = constant("ssh ")
public let kSecAttrProtocolFTPS = constant("ftps")
public let kSecAttrProtocolHTTPS = constant("htps")
public let kSecAttrProtocolHTTPProxy = constant("htpx")
public let kSecAttrProtocolHTTPSProxy = constant("htsx")
public let kSecAttrProtocolFTPProxy = constant("ftpx")
public let kSecAttrProtocolSMB = constant("smb ")
public let kSecAttrProtocolRTSP = constant("rtsp")
public let kSecAttrProtocolRTSPProxy = constant("rtsx")
public let kSecAttrProtocolDAAP = constant("daap")
public let kSecAttrProtocolEPPC = constant("eppc")
public let kSecAttrProtocolIPP = constant("ipp ")
public let kSecAttrProtocolNNTPS = constant("ntps")
public let kSecAttrProtocolLDAPS = constant("ldps")
public let kSecAttrProtocolTelnetS = constant("tels")
public let kSecAttrProtocolIMAPS = constant("imps")
public let kSecAttrProtocolIRCS = constant("ircs")
public let kSecAttrProtocolPOP3S = constant("pops")

public let kSecAttrAuthenticationTypeNTLM = constant("ntlm")
public let kSecAttrAuthenticationTypeMSN = constant("msna")
public let kSecAttrAuthenticationTypeDPA = constant("dpaa")
public let kSecAttrAuthenticationTypeRPA = constant("rpaa")
public let kSecAttrAuthenticationTypeHTTPBasic = constant("http")
public let kSecAttrAuthenticationTypeHTTPDigest = constant("httd")
public let kSecAttrAuthenticationTypeHTMLForm = constant("form")
public let kSecAttrAuthenticationTypeDefault = constant("dflt")

/// Apple's four-character codes and the words that the mount shows; any other string is kept as it is.
enum SecurityWords {
  static let protocols = SecurityTable([
    "ftp ": "ftp", "ftpa": "ftpAccount", "http": "http", "irc ": "irc", "nntp": "nntp", "pop3": "pop3",
    "smtp": "smtp", "sox ": "socks", "imap": "imap", "ldap": "ldap", "atlk": "appleTalk", "afp ": "afp",
    "teln": "telnet", "ssh ": "ssh", "ftps": "ftps", "htps": "https", "htpx": "httpProxy",
    "htsx": "httpsProxy", "ftpx": "ftpProxy", "smb ": "smb", "rtsp": "rtsp", "rtsx": "rtspProxy",
    "daap": "daap", "eppc": "eppc", "ipp ": "ipp", "ntps": "nntps", "ldps": "ldaps", "tels": "telnetS",
    "imps": "imaps", "ircs": "ircs", "pops": "pop3s",
  ])
  static let authenticationTypes = SecurityTable([
    "ntlm": "ntlm", "msna": "msn", "dpaa": "dpa", "rpaa": "rpa", "http": "httpBasic",
    "httd": "httpDigest", "form": "htmlForm", "dflt": "default",
  ])
  static let accessibilities = SecurityTable([
    "ak": "whenUnlocked", "ck": "afterFirstUnlock", "akpu": "whenPasscodeSetThisDeviceOnly",
    "aku": "whenUnlockedThisDeviceOnly", "cku": "afterFirstUnlockThisDeviceOnly",
  ])
}

/// Codes to words and back.
struct SecurityTable {
  private let words: [String: String]
  private let codes: [String: String]

  init(_ words: [String: String]) {
    self.words = words
    codes = Dictionary(uniqueKeysWithValues: words.map { ($0.value, $0.key) })
  }

  func word(_ code: CFString?) -> String? {
    guard let code = code?.text else { return nil }
    return words[code] ?? code
  }

  func code(_ word: String) -> CFString { constant(codes[word] ?? word) }
}

extension CFString {
  var text: String {
    let length = CFStringGetLength(self)
    let size = CFStringGetMaximumSizeForEncoding(length, CFStringBuiltInEncodings.UTF8.rawValue) + 1
    var bytes = [CChar](repeating: 0, count: size)
    // SAFETY: the buffer says how long it is.
    guard unsafe CFStringGetCString(self, &bytes, size, CFStringBuiltInEncodings.UTF8.rawValue) else {
      return ""
    }
    return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension CFNumber {
  /// A four-character code.
  var code: UInt32? {
    var number: Int64 = 0
    // SAFETY: the type says what is written there.
    guard unsafe CFNumberGetValue(self, .sInt64Type, &number) else { return nil }
    return UInt32(exactly: number)
  }

  static func make(_ code: UInt32) -> CFNumber {
    var number = Int64(code)
    // SAFETY: the type says what is read there.
    return unsafe CFNumberCreate(nil, .sInt64Type, &number)
  }
}

/// CoreFoundation compares its objects itself.
extension CFString: @retroactive Hashable {
  public static func == (left: CFString, right: CFString) -> Bool { CFEqual(left, right) }
  public func hash(into hasher: inout Hasher) { hasher.combine(CFHash(self)) }
}

// A CFString that is no CFMutableString never changes.
extension CFString: @retroactive @unchecked Sendable {}
