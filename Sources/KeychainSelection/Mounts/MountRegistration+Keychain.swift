package import Control

extension MountRegistration {
  /// Which keychain it shows, for commands that work on the same one.
  package var keychain: KeychainConfiguration {
    var keychain = KeychainConfiguration(word: keychainText)
    keychain.vault = vault
    return keychain
  }

  /// Notes the mount of this process.
  package static func add(
    _ path: String, _ keychain: KeychainConfiguration, settings: String, in folder: String
  ) -> MountRegistration {
    add(path, keychainText: keychain.word, vault: keychain.vault, settings: settings, in: folder)
  }

  /// The process that serves a keychain; nil: none does. One that is about to mount is among them.
  package static func process(serving keychain: KeychainConfiguration, in folder: String) -> Int32? {
    noted(in: folder).last { mount in
      let served = mount.keychain
      return served.choice == keychain.choice && served.vault == keychain.vault && mount.isAlive
    }?.process
  }
}
