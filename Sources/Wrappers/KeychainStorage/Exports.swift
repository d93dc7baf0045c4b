// Exports for a program that imports KeychainStorage alone: Keyhole's keychain, the type of `$property`, and the types that
// stand in the declarations.
@_exported public import DefaultKeychain
@_exported public import FoundationEssentials
@_exported public import WrapperCore
