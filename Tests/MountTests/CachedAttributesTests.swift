import Testing

@testable import Mount

@Suite struct CachedAttributesTests {
  private var cached = CachedAttributes()

  private mutating func reply(_ version: UInt64?) {
    cached.beginReply(1)
    cached.endReply(1, version: version)
  }

  @Test mutating func whatTheKernelNeverGotIsNotDropped() {
    #expect(cached.invalidates(1, serving: 1) == false)
    reply(nil)
    #expect(cached.invalidates(1, serving: 1) == false)
  }

  @Test mutating func sameValueKeepsItsAttributes() {
    reply(1)
    reply(1)
    #expect(cached.invalidates(1, serving: 1) == false)
  }

  @Test mutating func anotherValueDropsThemOnce() {
    reply(1)
    #expect(cached.invalidates(1, serving: 2) == true)
    #expect(cached.invalidates(1, serving: 2) == false)
  }

  @Test mutating func otherFilesAreOthers() {
    reply(1)
    #expect(cached.invalidates(2, serving: 2) == false)
    #expect(cached.invalidates(1, serving: 2) == true)
  }

  /// Which of two replies the kernel took last is unknown, as it may get them in the other order.
  @Test mutating func repliesWithDifferentValuesAreDropped() {
    reply(1)
    reply(2)
    #expect(cached.invalidates(1, serving: 2) == true)
    reply(2)
    #expect(cached.invalidates(1, serving: 2) == false)
  }

  /// A short-lived reply leaves what an older one said.
  @Test mutating func replyThatIsNotCachedChangesNothing() {
    reply(1)
    reply(nil)
    #expect(cached.invalidates(1, serving: 2) == true)
  }

  /// Its status may have been read before the value that is served now.
  @Test mutating func replyUnderWayIsDropped() {
    cached.beginReply(1)
    #expect(cached.invalidates(1, serving: 2) == true)
    cached.endReply(1, version: 1)
    #expect(cached.invalidates(1, serving: 2) == true)
  }

  @Test mutating func forgottenFileHasNoAttributes() {
    reply(1)
    cached.forget(1)
    #expect(cached.invalidates(1, serving: 2) == false)
  }

  @Test mutating func replyUnderWayOutlivesAForget() {
    cached.beginReply(1)
    cached.forget(1)
    cached.endReply(1, version: 1)
    #expect(cached.invalidates(1, serving: 2) == true)
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
