import Testing

@testable import Mount

@Suite struct CachedAttributesTests {
  private var cached = CachedAttributes()

  private mutating func reply(_ version: UInt64?) {
    let reply = cached.beginReply(1)
    _ = cached.endReply(reply, version: version)
  }

  /// Whether the attributes had to be dropped, which then happened.
  private mutating func drops(_ version: UInt64?, of file: UInt64 = 1, isRead: Bool = false) -> Bool {
    guard cached.beginDrop(file, unlessOf: version, isRead: isRead) else { return false }
    cached.endDrop(file)
    return true
  }

  @Test mutating func whatTheKernelNeverGotIsNotDropped() {
    #expect(drops(1) == false)
    reply(nil)
    #expect(drops(1) == false)
  }

  @Test mutating func sameValueKeepsItsAttributes() {
    reply(1)
    reply(1)
    #expect(drops(1) == false)
  }

  @Test mutating func anotherValueDropsThemOnce() {
    reply(1)
    #expect(drops(2) == true)
    #expect(drops(2) == false)
  }

  @Test mutating func attributesOfAFileThatIsGoneAreDropped() {
    #expect(drops(nil) == false)
    reply(1)
    #expect(drops(nil) == true)
  }

  @Test mutating func otherFilesAreOthers() {
    reply(1)
    #expect(drops(2, of: 2) == false)
    #expect(drops(2) == true)
  }

  /// Which of two replies the kernel took last is unknown, as it may get them in the other order.
  @Test mutating func repliesWithDifferentValuesAreDropped() {
    reply(1)
    reply(2)
    #expect(drops(2) == true)
    reply(2)
    #expect(drops(2) == false)
  }

  /// A short-lived reply leaves what an older one said.
  @Test mutating func replyThatIsNotCachedChangesNothing() {
    reply(1)
    reply(nil)
    #expect(drops(2) == true)
  }

  /// Its status may have been read before the value that is served now. The kernel ignores it after the drop.
  @Test mutating func replyUnderWayIsDropped() {
    let reply = cached.beginReply(1)
    #expect(drops(2) == true)
    _ = cached.endReply(reply, version: 1)
    #expect(drops(2) == false)
  }

  /// A drop would cut a read that has asked for the attributes.
  @Test mutating func replyForAReaderOfTheSameValueIsNotDropped() {
    let reply = cached.beginReply(1)
    #expect(drops(2, isRead: true) == false)
    _ = cached.endReply(reply, version: 2)
    #expect(drops(2, isRead: true) == false)
    #expect(drops(3, isRead: true) == true)
  }

  @Test mutating func dropIsUnderWayUntilTheKernelHasDropped() {
    reply(1)
    #expect(cached.isBeingDropped(1) == false)
    let begun = cached.beginDrop(1, unlessOf: 2)
    #expect(begun && cached.isBeingDropped(1))
    let again = cached.beginDrop(1, unlessOf: 2)
    #expect(again && cached.isBeingDropped(1))
    cached.endDrop(1)
    #expect(cached.isBeingDropped(1))
    cached.endDrop(1)
    #expect(cached.isBeingDropped(1) == false)
  }

  /// Each of many opens at the same time may wait before the kernel drops.
  @Test mutating func thousandsOfDropsAreUnderWayAtOnce() {
    reply(1)
    for _ in 0..<70_000 { _ = cached.beginDrop(1, unlessOf: 2) }
    for _ in 0..<69_999 { cached.endDrop(1) }
    #expect(cached.isBeingDropped(1))
    cached.endDrop(1)
    #expect(!cached.isBeingDropped(1))
  }

  /// The kernel may take its attributes, as it knew no file to drop any of.
  @Test mutating func firstReplyAboutAFileIsNotOvertaken() {
    let reply = cached.beginReply(1)
    #expect(cached.beginDrop(1, unlessOf: 2) == true)
    cached.endDrop(1, isKnown: false)
    _ = cached.endReply(reply, version: 1)
    #expect(drops(2, isRead: true) == true)
    #expect(drops(2) == false)
  }

  /// A reply under way may have the size that the value had before.
  @Test(arguments: [true, false]) mutating func replyFromBeforeTheReadersValueGrewIsDropped(endsFirst: Bool) {
    let reply = cached.beginReply(1)
    if endsFirst { _ = cached.endReply(reply, version: 1) }
    cached.noteGrowth(1)
    if !endsFirst { _ = cached.endReply(reply, version: 1) }
    #expect(drops(2, isRead: true) == true)
  }

  /// The kernel may have ignored it, and may have taken it.
  @Test(arguments: [true, false]) mutating func replyWhileADropIsUnderWayCounts(endsFirst: Bool) {
    reply(1)
    #expect(cached.beginDrop(1, unlessOf: 2) == true)
    let reply = cached.beginReply(1)
    if endsFirst { _ = cached.endReply(reply, version: 2) }
    cached.endDrop(1)
    if !endsFirst { _ = cached.endReply(reply, version: 2) }
    #expect(drops(2) == false)
    #expect(drops(3) == true)
  }

  @Test mutating func forgottenFileHasNoAttributes() {
    reply(1)
    cached.forget(1)
    #expect(drops(2) == false)
  }

  @Test mutating func replyUnderWayOutlivesAForget() {
    let reply = cached.beginReply(1)
    cached.forget(1)
    _ = cached.endReply(reply, version: 1)
    #expect(drops(2) == true)
  }

  @Test mutating func dropUnderWayOutlivesAForget() {
    reply(1)
    #expect(cached.beginDrop(1, unlessOf: 2) == true)
    cached.forget(1)
    #expect(cached.isBeingDropped(1) == true)
    cached.endDrop(1)
    #expect(cached.isBeingDropped(1) == false)
  }
}

@Suite struct OpenFileCountTests {
  private var count = OpenFileCount()

  @Test mutating func withoutOpenFilesItIsTheCallersTurn() {
    let action = count.detach {}
    #expect(action != nil && count.isDetached)
  }

  @Test mutating func lastFileThatIsClosedHasTheAction() {
    count.add()
    count.add()
    let (now, first) = (count.detach {}, count.remove())
    #expect(now == nil && first == nil)
    let last = count.remove()
    #expect(last != nil)
  }

  @Test mutating func filesThatAreClosedBeforeCallNothing() {
    count.add()
    let action = count.remove()
    #expect(action == nil && !count.isDetached)
  }
}
