import Glibc

/// Ports of 127.0.0.1 that nothing uses at the moment.
public enum FreePorts {
  /// Below those that the kernel gives to connections, so that none of these takes one before a server has it.
  private static let range: ClosedRange<UInt16> = 15_000...31_999

  public static func find(_ count: Int) throws -> [UInt16] {
    var found: Set<UInt16> = []
    for _ in 0..<10_000 where found.count < count {
      let port = UInt16.random(in: range)
      if isFree(port) { found.insert(port) }
    }
    guard found.count == count else { throw EtcdNodes.Failure(description: "no free ports") }
    return Array(found)
  }

  static func isFree(_ port: UInt16) -> Bool {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard number >= 0 else { return false }
    defer { close(number) }
    var address = loopback(port)
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(number, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  static func loopback(_ port: UInt16) -> sockaddr_in { place(port, at: "127.0.0.1") }

  /// `address`: four numbers.
  static func place(_ port: UInt16, at address: String) -> sockaddr_in {
    var place = sockaddr_in()
    place.sin_family = sa_family_t(AF_INET)
    place.sin_port = port.bigEndian
    place.sin_addr = in_addr(s_addr: unsafe inet_addr(address))
    return place
  }
}
