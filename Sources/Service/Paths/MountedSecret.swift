import Control
import KeychainSelection
import Platform
import SecretMemory
import Synchronization
import Tree

/// A secret as the file of a running mount, which has its keychain open.
///
/// A command that opens the keychain itself opens and checks the vault for one secret. A secret that is guarded, and one that can't
/// be read, is left to such a command: it says why, and what to do.
package struct MountedSecret {
  private let file: String

  /// nil: it is no full path of an item's secret, or no mount that can answer shows the keychain of commands.
  ///
  /// - Throws: `Failure` where there is no home.
  package init?(_ text: String) throws {
    let path = TreePath(text).ofValue
    guard PathLocation.isFull(text), path.components.first == "keychain", path.parent.isItem,
      !path.components.contains("..")
    else { return nil }
    let places = try StoragePaths.current()
    guard let mount = MountRegistration.newest(in: places.runtime), !mount.isStopped else { return nil }
    file = mount.path + "/" + path.string
  }

  /// Runs `body` with the secret, where it is given at once. A mount that does not answer within two seconds is left
  /// alone.
  ///
  /// - Returns: false: `body` was not called, and what opens the keychain itself finds the reason.
  package func read(_ body: (Span<UInt8>) -> Void) -> Bool {
    let content = Content()
    let file = file
    guard Background.result(within: .seconds(2), { content.read(file) }) == true else { return false }
    return content.lend(to: body)
  }

  /// The secret, read on another thread.
  private final class Content: Sendable {
    private struct State: ~Copyable {
      var bytes: SecretBytes?
      var count = 0
    }

    private let state = Mutex(State())

    /// False: it can't be read, or not at once.
    func read(_ path: String) -> Bool {
      // Where the mount has just ended, another file may have its path.
      guard (try? Files.fileSystem(of: path)) == Files.fuse,
        Files.attribute(FileTree.guardedAttribute, of: path) == Array("false".utf8),
        let file = try? Descriptor(path, [.noFollow, .nonBlocking]), let status = try? file.status,
        status.isRegular, status.size < 1 << 30,
        var content = try? SecretBytes(pinnable: Int(clamping: status.size) &+ 1)
      else { return false }
      // One byte of room more: so it is seen where the secret has become a longer one since.
      var count = 0
      while count < content.count {
        var all = content.mutableSpan
        var rest = all._mutatingExtracting(count..<all.count)
        guard let read = try? file.read(into: &rest) else { return false }
        guard read > 0 else { break }
        count += read
      }
      guard count < content.count else { return false }
      var owned: SecretBytes? = consume content
      state.withLock { state in
        state.bytes = owned.take()
        state.count = count
      }
      return true
    }

    func lend(to body: (Span<UInt8>) -> Void) -> Bool {
      state.withLock { state in
        guard let bytes = state.bytes.take() else { return false }
        body(bytes.span.extracting(..<state.count))
        return true
      }
    }
  }
}
