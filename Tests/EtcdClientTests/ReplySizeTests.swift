import EtcdHarness
import Testing

@testable import EtcdClient

@Suite(.timeLimit(.minutes(1))) struct ReplySizeTests {
  /// libcurl hands out 16 KiB at a time, and its poll knows only of what the socket has.
  @Test func repliesOfEverySizeArriveAtOnce() throws {
    let nodes = try EtcdNodes()
    let client = nodes.client { $0.deadline = .seconds(20) }
    for size in [1, 16_000, 16_384, 16_385, 20_000, 32_768, 40_000, 60_000, 65_536, 300_000, 1 << 20] {
      let value = [UInt8](repeating: 7, count: size)
      let put = KeyOperation.put(key: [1], value: value, lease: 0)
      _ = try client.commit(ClusterTransaction([put]))
      let time = try elapsed {
        let read = try client.read(RangeRequest(KeyRange(key: [1])))
        #expect(read.values.first?.value == value)
      }
      // Without the bytes that libcurl has kept, the call would end with its deadline.
      #expect(time < .seconds(10), "\(size)")
    }
  }
}
