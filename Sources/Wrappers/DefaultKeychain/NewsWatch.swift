/// Calls `changed` whenever a keychain in another process may have changed, for as long as it exists.
final class NewsWatch: Sendable {
  private let task: Task<Void, Never>

  init(_ news: AsyncStream<Void>, _ changed: @escaping @Sendable () -> Void) {
    task = Task {
      for await _ in news { changed() }
    }
  }

  deinit {
    task.cancel()
  }
}
