import Model
import Store
import Testing

@testable import Service

/// The state of a connection: permits of the person.
@Suite struct BusClientTests {
  private static let item = ItemID(rawValue: "a")
  private let read = BusQuestions.Subject(item: item, operation: .read)
  private let write = BusQuestions.Subject(item: item, operation: .write)

  /// The person has permitted a change when its call had been answered: the secret can't be read with that.
  @Test func latePermitCountsForItsOperation() {
    var client = BusClient()
    client.keep(Permit(item: Self.item, for: .write), for: write)
    #expect(client.itemsToRead.isEmpty)
    #expect(client.takePermit(for: read) == nil)
    #expect(client.takePermit(for: .init(item: ItemID(rawValue: "b"), operation: .write)) == nil)
    #expect(client.takePermit(for: write) != nil)
    #expect(client.takePermit(for: write) == nil)
  }

  @Test func permitToReadHoldsOnce() {
    var client = BusClient()
    client.keep(Permit(item: Self.item, for: .read), for: read)
    #expect(client.itemsToRead == [Self.item])
    #expect(client.takePermit(for: write) == nil)
    #expect(client.takePermit(for: read) != nil)
    #expect(client.itemsToRead.isEmpty && client.takePermit(for: read) == nil)
  }

  /// The question says for how long.
  @Test func permitEndsAfterAMinute() {
    var client = BusClient()
    client.keep(Permit(item: Self.item, for: .read), for: read, at: .now - .seconds(61))
    #expect(client.itemsToRead.isEmpty && client.takePermit(for: read) == nil)
    client.keep(Permit(item: Self.item, for: .read), for: read, at: .now - .seconds(30))
    #expect(client.itemsToRead == [Self.item] && client.takePermit(for: read) != nil)
  }
}
