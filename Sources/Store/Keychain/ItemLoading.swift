import Model
import Platform
import Synchronization

/// A reading of all items by pages, for those who wait for it: for all of them, or for what the pages so far may tell.
final class ItemLoading: Sendable {
  private struct State {
    /// The items of the pages so far, with what this process has changed since the reading began.
    var index = KeychainIndex()
    /// The items that this process has changed since, as the pages have them; nil: they have none.
    var former: [ItemID: Item?] = [:]
    var questions: [Question] = []
    /// The pages are those of a later moment than the first ones were.
    var isBegunAgain = false
  }

  /// Whether there is a folder: no, as long as no page has an item of it.
  private struct Question {
    let folder: ExactString
    let itemClass: ItemClass
    let answer: Promise<Bool>
  }

  private let state = Mutex(State())
  private let end = Promise<StoreError?>()

  /// Returns when all items are in the store's index. - Throws: why they could not be read.
  func wait() throws(StoreError) {
    if let error = end.wait() { throw error }
  }

  /// Returns as soon as an item of the folder was read; false: the reading has ended before.
  func waitForFolder(_ folder: ExactString, of itemClass: ItemClass) -> Bool {
    let question: Question? = state.withLock { state in
      guard !state.index.hasFolder(folder, of: itemClass) else { return nil }
      let question = Question(folder: folder, itemClass: itemClass, answer: Promise())
      state.questions.append(question)
      return question
    }
    guard let question else { return true }
    if end.wait(within: .zero) != nil { return false }
    return question.answer.wait()
  }

  /// The reading is over: the store has the items, or there was an error.
  func finish(_ error: StoreError? = nil) {
    end.fulfill(error)
    for question in state.withLock({ $0.questions }) { question.answer.fulfill(false) }
  }

  func add(_ page: [Item]) {
    state.withLock { state in
      for item in page {
        if state.former[item.id] == nil { state.index.insert(item) } else { state.former[item.id] = item }
      }
      answer(&state)
    }
  }

  /// This process has changed an item; nil: deleted it.
  func note(_ id: ItemID, _ item: Item?) {
    state.withLock { state in
      if state.former[id] == nil { state.former[id] = .some(state.index[id]) }
      if let item { state.index.insert(item) } else { state.index.remove(id) }
      answer(&state)
    }
  }

  private func answer(_ state: inout State) {
    state.questions.removeAll { question in
      guard state.index.hasFolder(question.folder, of: question.itemClass) else { return false }
      question.answer.fulfill(true)
      return true
    }
  }

  /// All pages will come once more, as of a later moment.
  func beginAgain() {
    state.withLock { state in
      (state.index, state.former, state.isBegunAgain) = (KeychainIndex(), [:], true)
    }
  }

  /// The index of all items, after `changes` since the reading began, and the changes that others made meanwhile: those of
  /// this process are published already.
  func takeAll(_ changes: ExternalChanges) -> (KeychainIndex, [Change]) {
    state.withLock { state in
      defer { (state.index, state.former) = (KeychainIndex(), [:]) }
      var published: [Change] = []
      switch changes {
      case .everything(let items):
        let index = KeychainIndex(items)
        published = index.changes(since: state.index)
        state.index = index
      case .items(let news): published = Self.take(news, &state)
      case .none: published = Self.take([], &state)
      }
      // The changes before the later moment are not known.
      if state.isBegunAgain { published = [Change(.overflow, .everything, origin: .external)] }
      return (state.index, published)
    }
  }

  private static func take(_ news: [ItemNews], _ state: inout State) -> [Change] {
    var unchanged = state.former
    for news in news { unchanged[news.id] = nil }
    // They are as in the pages: changed to what they were, or added and deleted.
    let undone = unchanged.map { ItemNews($0.key, $0.value, origin: .external) }
    return (news + undone).flatMap { state.index.take($0) }
  }
}
