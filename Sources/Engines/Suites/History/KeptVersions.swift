import Model
import Store

/// The records that are kept: for each key so many, and none that is too old.
struct KeptVersions {
  let records: [KeyVersionRecord]

  init(_ all: [KeyVersionRecord], _ retention: HistoryRetention, at now: Timestamp) {
    var counts: [ExactString: Int] = [:]
    var kept: [KeyVersionRecord] = []
    for record in all.sorted(by: { $0.number > $1.number }) where !retention.isOver(record.replaced, at: now)
    {
      counts[record.key, default: 0] += 1
      if counts[record.key, default: 0] <= retention.versions { kept.append(record) }
    }
    records = kept.reversed()
  }
}
