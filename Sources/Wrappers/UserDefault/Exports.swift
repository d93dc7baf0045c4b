// What a program that imports UserDefault alone gets: suites, and what `$property` is.
@_exported public import DefaultSuites
@_exported public import Live
