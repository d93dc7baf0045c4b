public import Formats
public import Model
import Platform
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
    [".gpg-id", ".age-recipients"].contains { Files.exists(folder + "/" + $0) }
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
    for name in ((try? Files.names(in: path)) ?? []).sorted() where !name.hasPrefix(".") {
      let child = "\(path)/\(name)"
      guard let status = try? Files.status(child, followingLinks: false) else { continue }
      if status.isFolder {
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

  /// The output of gpg(1); its questions go through the user's own agent.
  private static func decrypt(_ file: String) throws(FormatError) -> SecretBytes {
    let child: Child
    do { child = try Child(["gpg", "--quiet", "--decrypt", "--", file]) } catch {
      throw FormatError("gpg can't be started; install the package gnupg")
    }
    defer { child.end() }
    let bytes = try readAll(child)
    guard child.wait() == 0 else { throw FormatError("gpg can't decrypt \(file)") }
    return bytes
  }

  private static func readAll(_ child: Child) throws(FormatError) -> SecretBytes {
    do {
      let output = try Descriptor(duplicating: child.output)
      var bytes = try SecretBytes()
      var chunk = try SecretBytes(pinnable: 16 * 1024)
      while bytes.count <= SecretSlice.longest {
        var room = chunk.mutableSpan
        let count = try output.read(into: &room)
        guard count > 0 else { return bytes }
        try bytes.append(chunk.span.extracting(..<count))
      }
    } catch let error as SecretMemoryError {
      throw FormatError(error)
    } catch {
      throw FormatError("the output of gpg can't be read: \(error)")
    }
    throw FormatError("a file of the store is larger than 64 MiB")
  }
}
