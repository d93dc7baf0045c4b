// Exports for a program that imports Foil alone: suites, the names of key-value observing, and Foundation's types that
// stand in the declarations (OpenCombine: in LivePublisher.swift).
@_exported public import DefaultSuites
@_exported public import Foundation
@_exported public import KeyPathObservation
@_exported public import WrapperCore
