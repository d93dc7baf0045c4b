// Names of Apple's Security framework that stand in signatures here, with the values that Apple gives them.
public import CoreFoundation

/// A result of the keychain, as Apple's platforms number them.
public typealias OSStatus = Int32

public let errSecSuccess: OSStatus = 0
public let errSecUnimplemented: OSStatus = -4
public let errSecDiskFull: OSStatus = -34
public let errSecIO: OSStatus = -36
public let errSecParam: OSStatus = -50
public let errSecAllocate: OSStatus = -108
public let errSecUserCanceled: OSStatus = -128
public let errSecBadReq: OSStatus = -909
public let errSecNotAvailable: OSStatus = -25291
public let errSecReadOnly: OSStatus = -25292
public let errSecAuthFailed: OSStatus = -25293
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300
public let errSecInteractionNotAllowed: OSStatus = -25308
public let errSecDecode: OSStatus = -26275
public let errSecMissingEntitlement: OSStatus = -34018

func constant(_ text: String) -> CFString {
  // SAFETY: the string lives during the call, which copies it.
  unsafe CFStringCreateWithCString(nil, text, CFStringBuiltInEncodings.UTF8.rawValue)
}

public let kSecClass = constant("class")
public let kSecClassGenericPassword = constant("genp")
public let kSecClassInternetPassword = constant("inet")

public let kSecAttrAccessControl = constant("accc")
public let kSecAttrAccessible = constant("pdmn")
public let kSecAttrAccount = constant("acct")
public let kSecAttrAuthenticationType = constant("atyp")
public let kSecAttrComment = constant("icmt")
public let kSecAttrCreationDate = constant("cdat")
public let kSecAttrCreator = constant("crtr")
public let kSecAttrDescription = constant("desc")
public let kSecAttrIsInvisible = constant("invi")
public let kSecAttrLabel = constant("labl")
public let kSecAttrModificationDate = constant("mdat")
public let kSecAttrPath = constant("path")
public let kSecAttrPort = constant("port")
public let kSecAttrProtocol = constant("ptcl")
public let kSecAttrSecurityDomain = constant("sdmn")
public let kSecAttrServer = constant("srvr")
public let kSecAttrService = constant("svce")
public let kSecAttrType = constant("type")

public let kSecAttrAccessibleWhenUnlocked = constant("ak")
public let kSecAttrAccessibleAfterFirstUnlock = constant("ck")
public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly = constant("akpu")
public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly = constant("aku")
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly = constant("cku")
