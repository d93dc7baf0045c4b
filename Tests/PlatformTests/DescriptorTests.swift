import Glibc
import Platform
import Testing

@Suite struct DescriptorTests {
  @Test func whatWasWrittenIsReadFromAnyOffset() throws {
    try withFolder { folder in
      let file = try Descriptor(folder + "/a", [.readingAndWriting, .create, .exclusive])
      try file.write(Array("hello".utf8))
      try file.write(Array("HE".utf8), at: 0)
      #expect(try file.read(10, at: 0) == Array("HEllo".utf8))
      #expect(try file.read(2, at: 3) == Array("lo".utf8))
      #expect(try file.read(10).isEmpty)
      try file.seek(to: 4)
      #expect(try file.readToEnd(limit: 10) == Array("o".utf8))
    }
  }

  /// A lease is refused while the file is open, and is broken by one that opens it; without waiting that is EAGAIN.
  @Test func aLeaseShowsThatTheFileIsOpened() throws {
    try withFolder { folder in
      let path = folder + "/a"
      let file = try Descriptor(path, [.readingAndWriting, .create, .exclusive])
      do {
        let other = try Descriptor(path, .reading)
        let isLeased = try file.takeLease()
        #expect(!isLeased)
        _ = try other.status
      }
      let (isLeased, isWhole) = (try file.takeLease(), file.hasLease)
      #expect(isLeased && isWhole)
      #expect(throws: Errno.EAGAIN) { _ = try Descriptor(path, [.reading, .nonBlocking]).status }
      let isStillWhole = file.hasLease
      #expect(!isStillWhole)
    }
  }

  @Test(arguments: [0, 1, 4095, 4096, 4097, 70_000])
  func aWholeFileIsReadWhateverItsSize(count: Int) throws {
    try withFolder { folder in
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      try Descriptor(folder + "/a", [.writing, .create]).write(bytes)
      #expect(try Files.read(folder + "/a") == bytes)
      #expect(try Descriptor(folder + "/a", .reading).readToEnd(limit: count, expecting: count) == bytes)
      if count > 0 {
        #expect(throws: Errno.EFBIG) { try Files.read(folder + "/a", limit: count - 1) }
      }
    }
  }

  @Test func openingTellsWhyNot() throws {
    try withFolder { folder in
      #expect(throws: Errno.ENOENT) { try Descriptor(folder + "/a", .reading).synchronize() }
      try Files.makeLink(folder + "/link", to: "a")
      #expect(throws: Errno.ELOOP) { try Descriptor(folder + "/link", [.reading, .noFollow]).synchronize() }
      #expect(throws: Errno.EEXIST) {
        try Descriptor(folder + "/link", [.writing, .create, .exclusive]).synchronize()
      }
    }
  }

  @Test func aDescriptorIsClosedAndNotInherited() throws {
    try withFolder { folder in
      let file = try Descriptor(folder, [.reading, .folder])
      #expect(fcntl(file.number, F_GETFD) & FD_CLOEXEC != 0)
      let copy = try Descriptor(copying: file)
      #expect(fcntl(copy.number, F_GETFD) & FD_CLOEXEC != 0)
      var ends: [Int32] = [-1, -1]
      #expect(unsafe pipe(&ends) == 0)
      let reader = Descriptor(owning: ends[0])
      do { _ = Descriptor(owning: ends[1]) }
      // The last writer is closed: the reader is at the end, and does not wait.
      #expect(try reader.read(1).isEmpty)
    }
  }

  @Test func aLockIsFreeWithItsLastDescriptor() throws {
    try withFolder { folder in
      let first = try Descriptor(folder + "/a", [.reading, .create])
      let second = try Descriptor(folder + "/a", .reading)
      #expect(try first.tryLock(.shared))
      #expect(try second.tryLock(.shared))
      #expect(try !second.tryLock())
      first.unlock()
      #expect(try second.tryLock())
    }
  }

  @Test func statusShowsWhatWasSet() throws {
    try withFolder { folder in
      let file = try Descriptor(folder + "/a", [.readingAndWriting, .create], permissions: 0o600)
      try file.setPermissions(0o640)
      try file.truncate(to: 5)
      try file.setModified(SystemTime(seconds: -3, nanoseconds: 7))
      let status = try file.status
      #expect(status.isRegular && status.isShared && status.permissions == 0o640 && status.size == 5)
      #expect(status.modified == SystemTime(seconds: -3, nanoseconds: 7) && status.links == 1)
      #expect(status.owner == User.effective)
      #expect(try Files.status(folder + "/a") == status)
      try Files.remove(folder + "/a")
      #expect(try file.status.links == 0)
    }
  }
}
