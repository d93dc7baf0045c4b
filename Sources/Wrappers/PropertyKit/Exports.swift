// What a program that imports PropertyKit alone gets: suites, and the names of key-value observing.
@_exported public import DefaultSuites
@_exported public import KeyPathObservation
@_exported public import Live
