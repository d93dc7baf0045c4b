public import Formats
import Glibc
public import Model
import SecretMemory

/// A store of pass(1) or gopass: a folder of files that GnuPG decrypts, each as `PassEntry` reads it.
public struct PasswordStore {
  private let folder: String
  private let service: ExactString?
  /// Folders inside each other.
  private static let deepest = 64

  /// `service`: where all entries go, with their paths as accounts; nil: each folder is a service.
  public init(folder: String, service: ExactString? = nil) {
    self.folder = folder
    self.service = service
  }

  /// Whether the folder has a `.gpg-id`, or an `.age-recipients` as gopass makes it.
  public static func isStore(_ folder: String) -> Bool {
    [".gpg-id", ".age-recipients"].contains { unsafe access(folder + "/" + $0, F_OK) == 0 }
  }

  /// - Throws: `FormatError` where the folder is no store, or gpg(1) can't decrypt a file of it.
  public func read() throws(FormatError) -> Contents {
    guard Self.isStore(folder) else { throw FormatError("there is no `.gpg-id`, so it is no store of pass") }
    var contents = Contents()
    var encryptedOtherwise = 0
    try read(folder, [], &contents, &encryptedOtherwise)
    if encryptedOtherwise > 0 {
      contents.omitted += encryptedOtherwise
      contents.remarks.append(
        "\(encryptedOtherwise) encrypted with age (`gopass convert --crypto gpg` changes that)")
    }
    return contents
  }

  private func read(
    _ path: String, _ names: [String], _ contents: inout Contents, _ encryptedOtherwise: inout Int
  ) throws(FormatError) {
    guard names.count < Self.deepest else { throw FormatError("its folders are nested too deeply") }
    for name in Self.names(in: path).sorted() where !name.hasPrefix(".") {
      let child = "\(path)/\(name)"
      var status = stat()
      guard unsafe lstat(child, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        try read(child, names + [name], &contents, &encryptedOtherwise)
      } else if name.hasSuffix(".gpg") {
        let source = ByteSource(try Self.decrypt(child))
        contents.items.append(
          try PassEntry.item(source, path: names + [String(name.dropLast(4))], service: service))
      } else if name.hasSuffix(".age") {
        encryptedOtherwise += 1
      }
    }
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

  /// The output of gpg(1); its questions go through the user's own agent.
  private static func decrypt(_ file: String) throws(FormatError) -> SecretBytes {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw FormatError("there is no pipe: \(systemMessage(errno))") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    let words = ["gpg", "--quiet", "--decrypt", "--", file]
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    let error = unsafe posix_spawnp(&process, words[0], &actions, nil, &pointers, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard error == 0 else { throw FormatError("gpg can't be started; install the package gnupg") }
    let bytes = try readAll(ends[0])
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) == -1, errno == EINTR {}
    guard status == 0 else { throw FormatError("gpg can't decrypt \(file)") }
    return bytes
  }

  private static func readAll(_ descriptor: Int32) throws(FormatError) -> SecretBytes {
    do throws(SecretMemoryError) {
      var bytes = try SecretBytes()
      var chunk = try SecretBytes(pinnable: 16 * 1024)
      while bytes.count <= SecretSlice.longest {
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
      throw FormatError(error)
    }
    throw FormatError("a file of the store is larger than 64 MiB")
  }
}
