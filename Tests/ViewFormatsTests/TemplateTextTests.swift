import Platform
import SecretMemory
import Testing

@testable import ViewFormats

@Suite struct TemplateTextTests {
  private func render(_ text: String, _ value: String) throws -> String {
    let template = try ViewTemplate(templateText: .of(Array(text.utf8)))
    let values = Values(values: [Array(value.utf8)])
    return String(decoding: try template.render(values.lender).unprotected, as: UTF8.self)
  }

  @Test func referencesBecomeValuesInOnePass() throws {
    let path = Reference.path(0)
    #expect(try render("a {{ \(path) }}b{{\(path)}}", "x") == "a xbx")
    #expect(try render("{{ \(path) }}", "{{ \(path) }}") == "{{ \(path) }}")
    #expect(try render("\\{{ no }} { { }} {{ \(path) | json }}", "\"\n") == "{{ no }} { { }} \"\\\"\\n\"")
    #expect(try render("plain", "") == "plain")
  }

  @Test func filtersWriteAsTheirFormatsDo() throws {
    let path = Reference.path(0)
    #expect(try render("{{ \(path) | env }}", "a b") == "'a b'")
    #expect(try render("{{ \(path) | ini }}", "a b") == "a b")
    #expect(try render("{{ \(path) | url }}", "a b/é~") == "a%20b%2F%C3%A9~")
    #expect(try render("{{ \(path) | base64 }}", "u:p") == "dTpw")
    #expect(try render("{{ \(path) | line }}", "key\n") == "key")
    for (filter, value) in [("line", "a\nb"), ("ini", " a"), ("env", "it's")] {
      #expect { _ = try render("{{ \(path) | \(filter) }}", value) } throws: {
        ($0 as? ViewError)?.errno == .EILSEQ
      }
    }
  }

  @Test func whatIsNoReferenceIsEINVALWithTheLine() {
    for text in [
      "a\n{{ x", "\n{{ }}", "\n{{ a\n}}", "\n{{ a | rot13 }}", "\n{{ a | json | url }}", "\n{{|json}}",
    ] {
      #expect {
        _ = try render(text, "")
      } throws: { ($0 as? ViewError)?.errno == .EINVAL && ($0 as? ViewError)?.line == 2 }
    }
  }

  @Test func textThatIsNotUTF8IsEILSEQWithTheLine() throws {
    try ViewTemplate.checkTemplateText(.of(Array("é\n€ {{ x }}".utf8)))
    for bytes: [UInt8] in [[0x61, 0x0A, 0xFF, 0x0A], [0x0A, 0xC3], [0x0A, 0xC3, 0x0A]] {
      #expect {
        try ViewTemplate.checkTemplateText(.of(bytes))
      } throws: { ($0 as? ViewError)?.errno == .EILSEQ && ($0 as? ViewError)?.line == 2 }
    }
  }

  @Test func aReferenceToAViewOrATemplateIsELOOP() {
    for path in ["views/a", "/templates/b", "./views/a", "views"] {
      #expect { _ = try render("{{ \(path) }}", "") } throws: { ($0 as? ViewError)?.errno == .ELOOP }
      #expect { _ = try ViewTemplate(.env, entries: [(["A"], path)]) } throws: {
        ($0 as? ViewError)?.errno == .ELOOP
      }
    }
  }

  @Test func aMissingReferenceIsNeverEmpty() throws {
    #expect { _ = try render("{{ keychain/generic/none }}", "") } throws: {
      ($0 as? ViewError)?.errno == .ENOENT
    }
  }
}
