/// The output of a layout: its text, or only its length.
protocol JSONOutput {
  mutating func write(_ byte: UInt8)
  mutating func write(_ text: String.UTF8View)
  mutating func write(blanks count: Int)
}

extension [UInt8]: JSONOutput {
  mutating func write(_ byte: UInt8) { append(byte) }

  mutating func write(_ text: String.UTF8View) { append(contentsOf: text) }

  mutating func write(blanks count: Int) { append(contentsOf: repeatElement(0x20, count: count)) }
}

/// The length of a layout.
struct JSONLength: JSONOutput {
  private(set) var count = 0

  mutating func write(_ byte: UInt8) { count += 1 }

  mutating func write(_ text: String.UTF8View) { count += text.count }

  mutating func write(blanks count: Int) { self.count += count }
}
