// What a program that imports FTPropertyWrappers alone gets: where secrets are kept, what `$property` is, and the types
// that stand in the declarations.
@_exported public import DefaultKeychain
@_exported public import Foundation
@_exported public import WrapperCore
