import Dispatch
import Glibc

/// Tells which files of a folder others create, change, move or delete: inotify(7) as an async sequence.
public enum FolderWatch {
  /// The folder can't be watched: errno(3) of inotify_init1 or inotify_add_watch.
  public struct Failure: Error, Sendable {
    public let errno: Int32
  }

  /// Which changes count.
  public enum Kind: Sendable {
    /// Every write, also to a file that stays open, as databases do.
    case anything
    /// Files that are complete: closed by their writer, moved or deleted. They come to less than half as many.
    case wholeFiles

    fileprivate var events: Int32 {
      let whole = IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
      return self == .anything ? whole | IN_MODIFY | IN_CREATE : whole
    }
  }

  /// The names of the files that change from now on, without the folder, until the stream is dropped.
  ///
  /// nil means: anything may have changed, look at everything; it comes when the kernel's queue overflowed,
  /// and when the folder itself is gone, after which nothing more comes.
  /// The folder has to be there.
  /// - Throws: `Failure`; ENOSPC means that the user has too many watches (fs.inotify.max_user_watches).
  public static func names(
    in folder: String, of kind: Kind = .anything
  ) throws(Failure) -> AsyncStream<String?> {
    let descriptor = try watch(folder, kind)
    let (stream, continuation) = AsyncStream<String?>.makeStream()
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    source.setEventHandler { for name in readNames(descriptor) { continuation.yield(name) } }
    source.setCancelHandler { close(descriptor) }
    // SAFETY: a dispatch source may be cancelled from any thread; Dispatch does not say so to Swift.
    nonisolated(unsafe) let cancellable = source
    continuation.onTermination = { _ in unsafe cancellable.cancel() }
    source.activate()
    return stream
  }

  private static func watch(_ folder: String, _ kind: Kind) throws(Failure) -> Int32 {
    let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard descriptor >= 0 else { throw Failure(errno: errno) }
    // SAFETY: the string is alive during the call.
    guard unsafe inotify_add_watch(descriptor, folder, UInt32(kind.events)) >= 0 else {
      let error = errno
      close(descriptor)
      throw Failure(errno: error)
    }
    return descriptor
  }

  /// What is in the kernel's queue now; several events of one file are one name.
  private static func readNames(_ descriptor: Int32) -> [String?] {
    var bytes = [UInt8](repeating: 0, count: 16 * 1024)
    // SAFETY: the buffer says how long it is.
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
    guard count > 0 else { return [] }
    var names: [String?] = []
    var rest = bytes[..<count]
    while let event = Event(rest) {
      if !names.contains(event.name) { names.append(event.name) }
      rest = rest.dropFirst(event.length)
    }
    return names
  }
}

/// One `struct inotify_event`: wd, mask, cookie and len, of 32 bits each, and the name with zeros behind it.
private struct Event {
  /// nil: the queue overflowed, or the folder is gone.
  var name: String?
  var length: Int

  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count >= 16 else { return nil }
    let mask = bytes.word(at: 4)
    let nameLength = Int(bytes.word(at: 12))
    length = 16 + nameLength
    guard bytes.count >= length else { return nil }
    guard mask & UInt32(IN_Q_OVERFLOW | IN_IGNORED) == 0 else { return }
    let field = bytes.dropFirst(16).prefix(nameLength)
    name = String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
  }
}

extension ArraySlice<UInt8> {
  fileprivate func word(at offset: Int) -> UInt32 {
    dropFirst(offset).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}
