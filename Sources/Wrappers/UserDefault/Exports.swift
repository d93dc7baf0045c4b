// What a program that imports UserDefault alone gets: suites, what `$property` is, and Foundation's types that stand
// in the declarations.
@_exported public import DefaultSuites
@_exported public import Foundation
@_exported public import WrapperCore
