import Dispatch
import Glibc
import Synchronization

/// Tells which files of a folder others create, change, move or delete: inotify(7) as an async sequence.
///
/// Names come without the folder. nil means: anything may have changed, look at everything; it comes when
/// the kernel's queue overflowed. The folder has to be there when the watch begins.
public final class FolderWatch: Sendable {
  /// The folder can't be watched: errno(3) of inotify_init1 or inotify_add_watch.
  public struct Failure: Error, Sendable {
    public let errno: Int32
  }

  public let names: AsyncStream<String?>
  private let source: any DispatchSourceRead

  /// - Throws: `Failure`; ENOSPC means that the user has too many watches (fs.inotify.max_user_watches).
  public init(_ folder: String) throws(Failure) {
    let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard descriptor >= 0 else { throw Failure(errno: errno) }
    let events = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
    guard inotify_add_watch(descriptor, folder, UInt32(events)) >= 0 else {
      defer { close(descriptor) }
      throw Failure(errno: errno)
    }
    let (stream, continuation) = AsyncStream<String?>.makeStream()
    names = stream
    source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    source.setEventHandler { for name in readNames(descriptor) { continuation.yield(name) } }
    source.setCancelHandler {
      continuation.finish()
      close(descriptor)
    }
    source.activate()
  }

  deinit {
    source.cancel()
  }
}

/// What is in the kernel's queue now; several events of one file are one name.
private func readNames(_ descriptor: Int32) -> [String?] {
  var bytes = [UInt8](repeating: 0, count: 16 * 1024)
  // SAFETY: the buffer says how long it is.
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
  guard count > 0 else { return [] }
  var names: [String?] = []
  var rest = bytes[..<count]
  while let (name, length) = parse(rest) {
    if !names.contains(name) { names.append(name) }
    rest = rest.dropFirst(length)
  }
  return names
}

/// One `struct inotify_event`: wd, mask, cookie and len, of 32 bits each, and the name with zeros behind it.
private func parse(_ bytes: ArraySlice<UInt8>) -> (name: String?, length: Int)? {
  guard bytes.count >= 16 else { return nil }
  let fields = unsafe bytes.withUnsafeBytes { bytes in
    // SAFETY: the length was checked.
    unsafe (bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self), bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
  }
  let length = 16 + Int(fields.1)
  guard bytes.count >= length else { return nil }
  guard fields.0 & UInt32(IN_Q_OVERFLOW) == 0 else { return (nil, length) }
  let name = bytes.dropFirst(16).prefix(Int(fields.1)).prefix { $0 != 0 }
  return (String(decoding: name, as: UTF8.self), length)
}
