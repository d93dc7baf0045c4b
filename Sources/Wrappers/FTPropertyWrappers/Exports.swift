// What a program that imports FTPropertyWrappers alone gets: where secrets are kept, and what `$property` is.
@_exported public import DefaultKeychain
@_exported public import Live
