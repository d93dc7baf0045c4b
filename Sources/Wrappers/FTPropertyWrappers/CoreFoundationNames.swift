public import Foundation

// Names of Apple's CoreFoundation that code for the keychain uses. On Apple's platforms they are bridged to Swift's own
// types, so `"text" as CFString`, `150 as CFNumber`, `kSecAttrAccount as String` and `query as CFDictionary` compile
// there; where they are the same types, they compile here. A file that also imports CoreFoundation has to write
// `FTPropertyWrappers.CFString`.

/// A string, as CoreFoundation's `CFString` is bridged on Apple's platforms.
public typealias CFString = String
/// A number, as CoreFoundation's `CFNumber` is bridged on Apple's platforms.
public typealias CFNumber = NSNumber
/// Keys and values of any type, as CoreFoundation's `CFDictionary` is bridged on Apple's platforms.
public typealias CFDictionary = [String: Any]
