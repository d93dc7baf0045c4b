import Platform

/// A note that a mount's process leaves in the runtime folder for as long as it serves.
///
/// So commands find the mounts of their own stores without touching any other: one that hangs would hang
/// a process that looks at it.
package struct MountRegistration: Sendable {
  package let process: Int32
  package let path: String
  /// Which keychain it shows, as `KeychainConfiguration` writes it, for commands that work on the same one.
  package let keychainText: String
  /// The folder of the vault that it shows; nil: it shows none.
  package let vault: String?
  /// The folder of the suites that it shows, or the address of a cluster's store; empty: an earlier version's process did not note it.
  package let settings: String
  private let file: String

  /// Whether only its process reaches its settings: those of a cluster.
  package var hasRemoteSettings: Bool { !settings.isEmpty && !settings.hasPrefix("/") }

  private static let ending = ".mount"

  /// Whether a file of this name is the note of a mount.
  static func isNote(_ name: String) -> Bool { name.hasSuffix(ending) }

  /// The folder that the note is in, beside the control socket of the process.
  package var folder: String {
    file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
  }

  /// Notes the mount of this process.
  package static func add(
    _ path: String, keychainText: String, vault: String?, settings: String, in folder: String
  ) -> MountRegistration {
    _ = RuntimeFolder.make(folder)
    // Those of processes that were killed while they served the same folder.
    for record in all(in: folder) where record.path == path && !record.isAlive { record.remove() }
    let file = "\(folder)/\(CurrentProcess.number)\(ending)"
    // Of all bytes only NUL is in no path.
    let text = "\(path)\0\(keychainText)\0\(vault ?? "")\0\(settings)"
    // Others look at each change of the folder, and must not find a part of it.
    let new = file + ".new"
    if (try? Descriptor(new, [.writing, .create, .truncate, .noFollow]).write(Array(text.utf8))) != nil {
      try? Files.rename(new, to: file)
    }
    _ = try? Files.remove(new)
    return MountRegistration(CurrentProcess.number, file)
  }

  /// With the socket, which a process that was killed leaves behind.
  package func remove() {
    _ = try? Files.remove(file)
    _ = try? Files.remove(String(file.dropLast(Self.ending.count)) + ControlClient.socketEnding)
  }

  /// The mounts noted in a runtime folder that are still in the mount table, the newest last.
  package static func all(in folder: String) -> [MountRegistration] {
    let noted = noted(in: folder)
    guard !noted.isEmpty else { return [] }
    let table = MountTable()
    return noted.filter { record in
      if table.entry(at: record.path)?.type == "fuse.keyhole" { return true }
      // It was killed, and has been unmounted since.
      if !record.isAlive { record.remove() }
      return false
    }
  }

  /// In the place of a path: the process serves the keychain on the session bus, and mounts nothing.
  package static let serviceName = "org.freedesktop.secrets"

  /// Whether it is the Secret Service without a mount.
  package var isService: Bool { path == Self.serviceName }

  /// The processes with a control socket that live: mounts, and the Secret Service without a mount.
  package static func serving(in folder: String) -> [MountRegistration] {
    (noted(in: folder).filter(\.isService) + all(in: folder)).filter(\.isAlive)
  }

  /// The one that is at a path, one with a process before one whose process has died; nil: there is none.
  package static func named(_ path: String, in folder: String) -> MountRegistration? {
    let mounts = all(in: folder).filter { $0.path == path && !$0.isService }
    return mounts.last(where: \.isAlive) ?? mounts.last
  }

  /// The newest that has a process; nil: there is none. It may have left the mount table just now.
  package static func newest(in folder: String) -> MountRegistration? {
    noted(in: folder).last { $0.isAlive && !$0.isService }
  }

  /// The mount whose process alone reaches the settings of the user, those of a cluster; nil: they are the property lists of this
  /// machine.
  ///
  /// A mount whose process has died counts until it is unmounted: it is not taken for one that has never been there.
  package static func ofRemoteSettings(in folder: String) -> MountRegistration? {
    ofSettings(in: folder).flatMap { $0.hasRemoteSettings ? $0 : nil }
  }

  /// The mount that says which settings are the user's: the newest with a process, else one whose process has died; nil: there is none.
  package static func ofSettings(in folder: String) -> MountRegistration? {
    newest(in: folder) ?? all(in: folder).last { !$0.isService }
  }

  /// Every mount and service that is noted, also one that is about to mount; the newest last.
  package static func noted(in folder: String) -> [MountRegistration] {
    guard RuntimeFolder.problem(folder) == nil else { return [] }
    return names(in: folder).compactMap { name in
      guard name.hasSuffix(ending), let process = Int32(name.dropLast(ending.count)) else { return nil }
      let mount = MountRegistration(process, "\(folder)/\(name)")
      // It was removed since the folder was listed.
      return mount.path.isEmpty ? nil : mount
    }.sorted { $0.process < $1.process }
  }

  private init(_ process: Int32, _ file: String) {
    let parts = readFile(file).split(separator: "\0", maxSplits: 3, omittingEmptySubsequences: false)
    let texts = parts.map(String.init) + ["", "", "", ""]
    (self.process, self.file, path, settings) = (process, file, texts[0], texts[3])
    (keychainText, vault) = (texts[1], texts[2].isEmpty ? nil : texts[2])
  }

  /// Whether its process is still there; else every call says `Transport endpoint is not connected`.
  package var isAlive: Bool {
    guard let state = ProcessFiles(process).status?.state else { return false }
    // A zombie serves no request.
    return state != "Z" && state != "X"
  }
}
