public import Foundation

// Names of Apple's CoreFoundation that code for the keychain uses. On Apple's platforms they are bridged to Swift's own
// types, so `"text" as CFString`, `150 as CFNumber`, `kSecAttrAccount as String` and `query as CFDictionary` compile
// there; where they are the same types, they compile here. A file that also imports CoreFoundation has to write
// `FTPropertyWrappers.CFString`.

public typealias CFString = String
public typealias CFNumber = NSNumber
public typealias CFDictionary = [String: Any]
