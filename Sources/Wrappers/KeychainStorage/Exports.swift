// What a program that imports KeychainStorage alone gets: Keyhole's keychain, what `$property` is, and the types that
// stand in the declarations.
@_exported public import DefaultKeychain
@_exported public import FoundationEssentials
@_exported public import WrapperCore
