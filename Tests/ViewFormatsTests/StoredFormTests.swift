import Platform
import SecretMemory
import Testing

@testable import ViewFormats

@Suite(.timeLimit(.minutes(1))) struct StoredFormTests {
  private static func stored(_ grammar: Grammar) throws -> [UInt8] {
    let document = try grammar.parse(Samples.files(grammar)[0])
    return try document.numberedTemplate().encoded().unprotected
  }

  @Test(arguments: Grammar.all) func oneTemplateHasOneForm(grammar: Grammar) throws {
    let bytes = try Self.stored(grammar)
    let template = try ViewTemplate(encoded: .of(bytes))
    #expect(template.format == grammar.format && template.dialect == grammar.dialect)
    #expect(try template.encoded().unprotected == bytes)
  }

  @Test(arguments: Grammar.all) func aCutFormIsDamage(grammar: Grammar) throws {
    let bytes = try Self.stored(grammar)
    for count in 0..<bytes.count {
      #expect {
        _ = try ViewTemplate(encoded: .of(Array(bytes[..<count])))
      } throws: { ($0 as? ViewError)?.errno == .EIO }
    }
    #expect { _ = try ViewTemplate(encoded: .of(bytes + [0])) } throws: { ($0 as? ViewError)?.errno == .EIO }
  }

  /// The template that a damaged form still reads as has one form itself, and renders or fails without a trap.
  @Test(arguments: Grammar.all) func aDamagedFormNeverTraps(grammar: Grammar) throws {
    let bytes = try Self.stored(grammar)
    var secrets = RandomSecrets(seed: 5)
    for _ in 0..<800 {
      var damaged = bytes
      for _ in 0...secrets.below(2) { damaged[secrets.below(damaged.count)] = UInt8(secrets.below(256)) }
      guard let template = try? ViewTemplate(encoded: .of(damaged)) else { continue }
      #expect(try template.encoded().unprotected == damaged)
      let value = secrets.next()
      _ = try? template.render { (_, body) throws(ViewError) in try body(value.span) }
      _ = try? template.exposures { (_, body) throws(ViewError) in try body(value.span) }
    }
  }
}
