import Glibc
import Model
import SecretMemory

/// A store of pass(1): a folder of files that GnuPG decrypts.
///
/// The first line is the password of `keychain/generic/FOLDER/NAME`; what follows it may be secret too, so it
/// becomes an item of its own, `NAME/notes`.
struct PasswordStore {
  let folder: String

  static func isStore(_ folder: String) -> Bool {
    unsafe access(folder + "/.gpg-id", F_OK) == 0
  }

  func read() throws(TransferError) -> Contents {
    var contents = Contents()
    try read(folder, [], &contents)
    return contents
  }

  private func read(_ path: String, _ names: [String], _ contents: inout Contents) throws(TransferError) {
    for name in Self.names(in: path).sorted() where !name.hasPrefix(".") {
      let child = "\(path)/\(name)"
      var status = stat()
      guard unsafe lstat(child, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        try read(child, names + [name], &contents)
      } else if name.hasSuffix(".gpg") {
        contents.items += try items(child, names + [String(name.dropLast(4))])
      }
    }
  }

  private func items(_ file: String, _ names: [String]) throws(TransferError) -> [ItemEntry] {
    let source = Source(try Self.decrypt(file))
    let end = source.whole.first { source[$0] == 0x0A } ?? source.count
    let service = names.count > 1 ? names.dropLast().joined(separator: "/") : names[0]
    let account = names.count > 1 ? names[names.count - 1] : ""
    let identity = { (account: String) in
      ItemIdentity.generic(service: ExactString(service), account: ExactString(account))
    }
    var items = [ItemEntry(identity(account), [], Passage(source, 0..<end))]
    let rest = min(end + 1, source.count)..<source.count
    if !rest.isEmpty {
      items.append(
        ItemEntry(identity(account.isEmpty ? "notes" : account + "/notes"), [], Passage(source, rest)))
    }
    return items
  }

  private static func names(in path: String) -> [String] {
    guard let folder = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      names.append(
        unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
          unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names.filter { $0 != "." && $0 != ".." }
  }

  /// What gpg(1) prints; its questions go through the user's own agent.
  private static func decrypt(_ file: String) throws(TransferError) -> SecretBytes {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw TransferError("there is no pipe") }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    for end in ends { unsafe posix_spawn_file_actions_addclose(&actions, end) }
    let words = ["gpg", "--quiet", "--decrypt", "--", file]
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    let error = unsafe posix_spawnp(&process, words[0], &actions, nil, &pointers, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard error == 0 else { throw TransferError("gpg can't be started; install the package gnupg") }
    let bytes = try SourceReading.readAll(ends[0])
    var status: Int32 = 0
    unsafe waitpid(process, &status, 0)
    guard status == 0 else { throw TransferError("gpg can't decrypt \(file)") }
    return bytes
  }
}

enum SourceReading {
  /// Everything up to the end of a pipe or a file.
  static func readAll(_ descriptor: Int32) throws(TransferError) -> SecretBytes {
    do throws(SecretMemoryError) {
      var bytes = try SecretBytes()
      var chunk = try SecretBytes(pinnable: 64 * 1024)
      while true {
        // SAFETY: the chunk says how long it is.
        let count = unsafe chunk.withUnsafeMutableBytes {
          unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
        }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return bytes }
        try unsafe chunk.withUnsafeBytes { chunk throws(SecretMemoryError) in
          try unsafe bytes.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
        }
      }
    } catch {
      throw TransferError(error)
    }
  }
}
