// Exports for a program that imports UserDefault alone: suites, the type of `$property`, and Foundation's types that stand
// in the declarations.
@_exported public import DefaultSuites
@_exported public import Foundation
@_exported public import WrapperCore
