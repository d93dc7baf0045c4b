import Foil
import Glibc
import Synchronization
import Testing

/// The wrappers of a program and the mount, on one suite.
@Suite(.timeLimit(.minutes(1))) struct WrapperTests {
  @Test func wrapperSeesTheShellAndTheShellTheWrapper() async throws {
    try await withKeyhole { keyhole in
      let suite = Suite("com.example.app", in: .folder(keyhole.world.config))
      let volume = FoilDefaultStorage(wrappedValue: 1, key: "volume", userDefaults: suite)
      let published = Mutex<[Int]>([])
      let subscription = volume.projectedValue.sink { value in published.withLock { $0.append(value) } }
      defer { subscription.cancel() }

      volume.wrappedValue = 2
      #expect(
        holds {
          (try? System.text(keyhole / "defaults/com.example.app/volume")) == "2\n"
        })
      try keyhole.check("echo 3 > defaults/com.example.app/volume")
      #expect(holds { volume.wrappedValue == 3 })
      try keyhole.world.check("keyhole set defaults/com.example.app/volume 4")
      #expect(holds { volume.wrappedValue == 4 })
      #expect(holds { published.withLock { $0 } == [1, 2, 3, 4] })
      try keyhole.check("rm defaults/com.example.app/volume")
      #expect(holds { volume.wrappedValue == 1 })
    }
  }
}
