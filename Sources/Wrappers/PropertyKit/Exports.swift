// Exports for a program that imports PropertyKit alone: suites, the names of key-value observing, and Foundation's types
// that stand in the declarations.
@_exported public import DefaultSuites
@_exported public import Foundation
@_exported public import KeyPathObservation
@_exported public import WrapperCore
