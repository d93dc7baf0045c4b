// Names of Apple's Security framework that stand in signatures here, with the values that Apple gives them.

/// A result of the keychain, as Apple's platforms number them.
public typealias OSStatus = Int32

/// The operation succeeded.
public let errSecSuccess: OSStatus = 0
/// The function is not implemented.
public let errSecUnimplemented: OSStatus = -4
/// The disk or the quota is full.
public let errSecDiskFull: OSStatus = -34
/// Reading or writing failed.
public let errSecIO: OSStatus = -36
/// A parameter is not valid.
public let errSecParam: OSStatus = -50
/// Memory could not be allocated.
public let errSecAllocate: OSStatus = -108
/// The user refused or did not answer.
public let errSecUserCanceled: OSStatus = -128
/// The keychain does not support the request.
public let errSecBadReq: OSStatus = -909
/// The keychain can't be reached, as when a Secret Service does not answer.
public let errSecNotAvailable: OSStatus = -25291
/// There is no keychain to store in, as when a Secret Service has no default collection.
public let errSecNoDefaultKeychain: OSStatus = -25307
/// The keychain is read-only.
public let errSecReadOnly: OSStatus = -25292
/// The password is wrong, or other fingers are enrolled than when the item was stored.
public let errSecAuthFailed: OSStatus = -25293
/// An item with the same primary key exists.
public let errSecDuplicateItem: OSStatus = -25299
/// No item has these attributes.
public let errSecItemNotFound: OSStatus = -25300
/// The keychain is locked.
public let errSecInteractionNotAllowed: OSStatus = -25308
/// The stored bytes can't be decoded: the keychain is damaged.
public let errSecDecode: OSStatus = -26275
/// The operation is not permitted to this program.
public let errSecMissingEntitlement: OSStatus = -34018

public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecClassInternetPassword: CFString = "inet"

public let kSecAttrAccessControl: CFString = "accc"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAuthenticationType: CFString = "atyp"
public let kSecAttrComment: CFString = "icmt"
public let kSecAttrCreationDate: CFString = "cdat"
public let kSecAttrCreator: CFString = "crtr"
public let kSecAttrDescription: CFString = "desc"
public let kSecAttrIsInvisible: CFString = "invi"
public let kSecAttrLabel: CFString = "labl"
public let kSecAttrModificationDate: CFString = "mdat"
public let kSecAttrPath: CFString = "path"
public let kSecAttrPort: CFString = "port"
public let kSecAttrProtocol: CFString = "ptcl"
public let kSecAttrSecurityDomain: CFString = "sdmn"
public let kSecAttrServer: CFString = "srvr"
public let kSecAttrService: CFString = "svce"
public let kSecAttrType: CFString = "type"

public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
