// Apple's names for protocols and authentication types, and Keyhole's words for them.
import Foundation

public let kSecAttrProtocolFTP: CFString = "ftp "
public let kSecAttrProtocolFTPAccount: CFString = "ftpa"
public let kSecAttrProtocolHTTP: CFString = "http"
public let kSecAttrProtocolIRC: CFString = "irc "
public let kSecAttrProtocolNNTP: CFString = "nntp"
public let kSecAttrProtocolPOP3: CFString = "pop3"
public let kSecAttrProtocolSMTP: CFString = "smtp"
public let kSecAttrProtocolSOCKS: CFString = "sox "
public let kSecAttrProtocolIMAP: CFString = "imap"
public let kSecAttrProtocolLDAP: CFString = "ldap"
public let kSecAttrProtocolAppleTalk: CFString = "atlk"
public let kSecAttrProtocolAFP: CFString = "afp "
public let kSecAttrProtocolTelnet: CFString = "teln"
public let kSecAttrProtocolSSH: CFString = "ssh "
public let kSecAttrProtocolFTPS: CFString = "ftps"
public let kSecAttrProtocolHTTPS: CFString = "htps"
public let kSecAttrProtocolHTTPProxy: CFString = "htpx"
public let kSecAttrProtocolHTTPSProxy: CFString = "htsx"
public let kSecAttrProtocolFTPProxy: CFString = "ftpx"
public let kSecAttrProtocolSMB: CFString = "smb "
public let kSecAttrProtocolRTSP: CFString = "rtsp"
public let kSecAttrProtocolRTSPProxy: CFString = "rtsx"
public let kSecAttrProtocolDAAP: CFString = "daap"
public let kSecAttrProtocolEPPC: CFString = "eppc"
public let kSecAttrProtocolIPP: CFString = "ipp "
public let kSecAttrProtocolNNTPS: CFString = "ntps"
public let kSecAttrProtocolLDAPS: CFString = "ldps"
public let kSecAttrProtocolTelnetS: CFString = "tels"
public let kSecAttrProtocolIMAPS: CFString = "imps"
public let kSecAttrProtocolIRCS: CFString = "ircs"
public let kSecAttrProtocolPOP3S: CFString = "pops"

public let kSecAttrAuthenticationTypeNTLM: CFString = "ntlm"
public let kSecAttrAuthenticationTypeMSN: CFString = "msna"
public let kSecAttrAuthenticationTypeDPA: CFString = "dpaa"
public let kSecAttrAuthenticationTypeRPA: CFString = "rpaa"
public let kSecAttrAuthenticationTypeHTTPBasic: CFString = "http"
public let kSecAttrAuthenticationTypeHTTPDigest: CFString = "httd"
public let kSecAttrAuthenticationTypeHTMLForm: CFString = "form"
public let kSecAttrAuthenticationTypeDefault: CFString = "dflt"

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
    code.map { words[$0] ?? $0 }
  }

  func code(_ word: String) -> CFString { codes[word] ?? word }
}

extension NSNumber {
  /// A four-character code; nil: it is none.
  var code: UInt32? {
    let whole = int64Value
    return self == NSNumber(value: whole) ? UInt32(exactly: whole) : nil
  }
}
