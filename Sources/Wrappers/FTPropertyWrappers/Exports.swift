// Exports for a program that imports FTPropertyWrappers alone: the keychain, the type of `$property`, and the types
// that stand in the declarations.
@_exported public import DefaultKeychain
@_exported public import Foundation
@_exported public import WrapperCore
