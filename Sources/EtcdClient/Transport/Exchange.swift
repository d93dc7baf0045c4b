/// One stream as libcurl's functions read and write it: what is sent, and what was received so far.
///
/// Used by the thread that performs the transfer.
final class Exchange {
  /// Frames that are to be sent.
  private var output: [UInt8]
  private var position = 0
  /// Nothing follows `output`.
  private let isOutputComplete: Bool

  /// libcurl has got bytes to send: the servers may have them.
  private(set) var didSend = false
  /// libcurl waits for more to send.
  private(set) var isPaused = false
  /// A connection may be made. Not later, nor for a request that was sent: libcurl would send it once more.
  var mayConnect: Bool

  /// How much was received, without the head.
  private(set) var receivedBytes = 0

  private(set) var head = ReplyHead()
  private(set) var frames: MessageFrames

  /// `limit`: the most bytes of a message that is received.
  init(sending output: [UInt8], isComplete: Bool, mayConnect: Bool, limit: Int) {
    (self.output, isOutputComplete, self.mayConnect) = (output, isComplete, mayConnect)
    frames = MessageFrames(limit: limit)
  }

  /// The next message that was received as a whole.
  func nextMessage() throws(WireError) -> [UInt8]? {
    try frames.next()
  }

  /// Puts a frame behind those that were sent.
  func send(_ frame: [UInt8]) {
    if position == output.count {
      output = []
      position = 0
    }
    output += frame
    isPaused = false
  }

  /// Gives up to so many bytes to `take`; nil: there are none for now.
  func give(_ count: Int, _ take: (ArraySlice<UInt8>) -> Void) -> Int? {
    let part = output[position...].prefix(count)
    if part.isEmpty {
      isPaused = !isOutputComplete
      return isOutputComplete ? 0 : nil
    }
    take(part)
    position &+= part.count
    didSend = true
    mayConnect = false
    return part.count
  }

  /// False: more is there than a message may have, and the stream can't go on.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    receivedBytes &+= bytes.count
    unsafe frames.append(bytes)
    return frames.hasRoom
  }

  func receiveHeader(_ line: UnsafeRawBufferPointer) {
    unsafe head.take(line)
  }
}
