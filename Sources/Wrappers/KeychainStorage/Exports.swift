// What a program that imports KeychainStorage alone gets: Keyhole's keychain, and what `$property` is.
@_exported public import DefaultKeychain
@_exported public import Live
